package hostile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/config"
)

// unbuilt matches sources of untrusted text that Countersign does not read. callsFor matches calls of a model that
// Countersign does not offer.
var (
	unbuilt  = regexp.MustCompile(`(?i)(\bskill|sub.?agent|\bmcp\b|terminal)`)
	callsFor = regexp.MustCompile(`^(?:calls|uses|updates|changes) (.+)$`)
	// A model of this kind claims that the plan has changed.
	updates = "calls plan update"
)

// missingPart returns the part that a case needs and that does not exist, although the case's target exists.
func missingPart(c Case) string {
	if u, ok := c.Input["untrusted"].(map[string]any); ok {
		if source, _ := u["source"].(string); unbuilt.MatchString(source) {
			return c.Target + " with " + source
		}
	}
	if model, _ := c.Input["model"].(string); strings.HasPrefix(c.Target, "run:") && callsFor.MatchString(model) &&
		model != updates {
		return c.Target + " whose model " + model
	}
	if env, ok := c.Input["env"].(map[string]any); ok && c.Target == "config:boot" {
		return unreadSetting(env)
	}
	args, _ := c.Input["args"].(map[string]any)
	for name := range args {
		if foreign[name] && !aboutForm.MatchString(c.Expect.Note) {
			return fmt.Sprintf("%s with %s", c.Target, name)
		}
	}
	return ""
}

// unreadSetting returns an environment variable of the case that Countersign does not read.
func unreadSetting(env map[string]any) string {
	var asked []string
	// It need not start.
	_, _ = config.Load(func(name string) string { asked = append(asked, name); return "" }, everyPart...)
	for name := range env {
		if !slices.Contains(asked, name) {
			return "config:boot with " + name
		}
	}
	return ""
}

// permitted returns the reason why a response other than the expected one is also right, or "". Each reason comes from
// the case itself or from the contract.
func permitted(c Case, g got) string {
	if why := permittedByNote(c, g); why != "" {
		return why
	}
	switch {
	case c.Expect.Class == "ValidationError" && g.status == 409 && g.code == "idempotency_key_reused":
		return "contract section 1: a key that comes with another body is a PolicyError"
	case c.Expect.Class == "ValidationError" && g.class == "ModelError" && g.code == "answer_too_large":
		return "an answer of the model over 512 KiB is refused whole, before a call in it is looked at, and nothing " +
			"of it is written"
	case c.Category == "provider" && c.Expect.Class == "ToolExecutionError" && g.decision == "mended":
		return "the failure was recovered: the effect is proven and happened once, so there is no error"
	case c.Target == "http:pending" && g.class == "ValidationError" && g.decision == "deny":
		return "control characters in a mail are refused (HD-010), so that there is nothing to show"
	}
	return ""
}

// permittedByNote returns the reason why the case's note permits the response, or "".
func permittedByNote(c Case, g got) string {
	note := c.Expect.Note
	switch {
	case strings.Contains(note, "fall back to approval") && g.decision == "require_approval":
		return "the note asks for this: the call falls back to an approval, and nothing was done"
	case strings.Contains(note, "only allowed ones are dialled") && g.decision == "allow":
		return "the note permits it: a public address of the name was dialled, and no other"
	case strings.Contains(note, "failed or summarised") && g.decision == "completed":
		return "the note permits it: the run was summarised, within three calls of the model"
	case strings.Contains(note, "rest refused") && c.Expect.Class == "ModelError" && g.decision == "capped":
		return "the note permits it: the first 16 calls wait for their user, and the rest is answered as not run"
	case strings.Contains(note, "refused in V1") && g.decision == "deny":
		return "the note permits it: it is refused before anybody is asked"
	}
	return ""
}
