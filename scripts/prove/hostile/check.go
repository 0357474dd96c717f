package hostile

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

var decisionNote = regexp.MustCompile(`^decision=(\w+);`)

// compare compares the result with the expected one.
func compare(c Case, g got) (wrong []string) {
	due := c.Expect
	// A 503 has a class in its body, whatever its cause. A case that expects no particular cause names no class.
	if g.class != due.Class && !(due.Class == "none" && g.status == 503 && due.HTTP == 503) {
		wrong = append(wrong, fmt.Sprintf("class %s, want %s", g.class, due.Class))
	}
	// A model's mistakes happen in a stored run, whose response is always 200 (contract §1).
	if inRun(c.Target) {
		due.HTTP = 200
	}
	if g.status != due.HTTP {
		wrong = append(wrong, fmt.Sprintf("status %d, want %d", g.status, due.HTTP))
	}
	if m := decisionNote.FindStringSubmatch(due.Note); m != nil && !decisionFits(m[1], g.decision) {
		wrong = append(wrong, fmt.Sprintf("the decision is %q, want %s", g.decision, m[1]))
	}
	if len(wrong) > 0 {
		return wrong
	}
	return reason(c, g)
}

// inRun reports whether a model within a run reaches the target.
func inRun(target string) bool {
	return strings.HasPrefix(target, "tool:") || strings.HasPrefix(target, "model:") ||
		strings.HasPrefix(target, "run:") || strings.HasPrefix(target, "ssh:")
}

func decisionFits(want, decision string) bool {
	switch want {
	case "require_approval", "allow":
		return decision == want
	case "not_allow", "allow_only_if_host_allowlist": // no host is on an allowlist here
		return decision == "require_approval" || decision == "deny"
	}
	return false
}

var classes = []string{"ValidationError", "AuthError", "PolicyError", "ToolExecutionError", "ModelError"}

// always makes the checks that every case must pass.
func (s *env) always() error {
	if s.w == nil {
		return nil
	}
	alive := s.alive()
	errs := []error{alive, s.audited()}
	if n, most := s.effects(), len(s.approved)+s.allowed; n > most {
		errs = append(errs, fmt.Errorf("%d effects, and %d were approved", n, most))
	}
	for _, h := range s.heard {
		errs = append(errs, s.proper(h))
	}
	logs := s.w.Logs.String()
	for entry := range strings.Lines(logs) {
		if !json.Valid([]byte(entry)) || !strings.HasPrefix(entry, "{") {
			errs = append(errs, fmt.Errorf("a log line is not an entry: %.200q", entry))
		}
	}
	for what, found := range s.leaks(logs) {
		errs = append(errs, fmt.Errorf("the log contains %s: %.80q", what, found))
	}
	return errors.Join(errs...)
}

// alive sends the server one more request.
func (s *env) alive() error {
	a, err := s.client("userC").Pending(s.ctx)
	if err == nil && a.HTTP != 200 {
		err = fmt.Errorf("afterwards the server returns %d", a.HTTP)
	}
	return err
}

// proper checks a response against the contract: errors have the right shape, and no data of another user occurs.
func (s *env) proper(h reply) error {
	for _, uid := range []string{"userA", "userB"} {
		if uid != h.uid && strings.Contains(string(h.Body), canaryOf(uid)) {
			return fmt.Errorf("%s shows %s data of %s", h.what, h.uid, uid)
		}
	}
	if h.HTTP < 400 {
		return nil
	}
	var body struct {
		OK    *bool `json:"ok"`
		Error struct {
			Class, Code, Message, Field, RequestID, RunID string
			Moments                                       []tool.Moment
		}
	}
	dec := json.NewDecoder(strings.NewReader(string(h.Body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&body); err != nil || body.OK == nil || *body.OK || body.Error.Code == "" ||
		body.Error.Message == "" || body.Error.RequestID == "" {
		return fmt.Errorf("%s returns %d with an error outside the contract: %.200q", h.what, h.HTTP, h.Body)
	}
	if !strings.Contains(strings.Join(classes, " "), body.Error.Class) {
		return fmt.Errorf("%s returns the class %q", h.what, body.Error.Class)
	}
	for what, found := range s.leaks(string(h.Body)) {
		return fmt.Errorf("the error of %s contains %s: %.80q", h.what, what, found)
	}
	return nil
}

// leaks returns the private texts that occur in a text which must have none.
func (s *env) leaks(text string) map[string]string {
	found := map[string]string{}
	for _, token := range s.secrets {
		if len(token) > 8 && strings.Contains(text, token) {
			found["a token"] = token
		}
	}
	if strings.Contains(text, "CANARY") {
		found["a canary"] = "CANARY"
	}
	if strings.Contains(text, "a-key-of-the-fake-gemini") {
		found["the model's key"] = "a-key-of-the-fake-gemini"
	}
	for private := range s.private {
		if strings.Contains(text, private) || strings.Contains(text, strings.Trim(quoted(private), `"`)) {
			found["a text of its user"] = private
		}
	}
	return found
}

// audited checks that the audit has no private texts either.
func (s *env) audited() error {
	for _, uid := range []string{"userA", "userB"} {
		a, err := s.client(uid)(s.ctx, http.MethodGet, "/api/agent/audit", nil)
		if err != nil {
			return err
		}
		for what, found := range s.leaks(string(a.Body)) {
			return fmt.Errorf("the audit of %s contains %s: %.80q", uid, what, found)
		}
	}
	return nil
}
