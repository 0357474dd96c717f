package approval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// CodeReadInPart is the error code of a call that would replace a text that the model has read only in part.
const CodeReadInPart fault.Code = "read_in_part"

// readWhole returns an error if the call would replace a whole text that the model has read only in part: the rest
// would be lost. A text that the run has not read at all may be replaced.
func readWhole(tx *unit.Tx, t *tool.Tool, call run.ProposedCall) error {
	texts, err := t.Replaces(call.Args)
	if err != nil || len(texts) == 0 || call.UserInitiated {
		return err
	}
	parts := opening(tx.State)
	for _, a := range tx.State.Actions {
		if by := tx.ToolIn(a.Tool, a.UserInitiated); by != nil {
			parts = append(parts, partsOf(tx.State, by, a)...)
		}
	}
	for _, text := range texts {
		if missing, newest := missingOf(text, parts); missing != "" {
			return fault.New(fault.Validation, CodeReadInPart,
				"You have read %s only in part: %s is missing and would be lost. %s", text.Name, missing,
				newest.Rest)
		}
	}
	return nil
}

// opening returns the parts of incomplete files that the model saw when its session began.
func opening(s *run.State) (parts []tool.Part) {
	if s.Input.Session == nil {
		return nil
	}
	for _, e := range s.Input.Session.Excerpts {
		repo := s.Input.Session.Repo
		parts = append(parts, tool.Part{Text: tool.Text{In: repo.Owner() + "/" + repo.Name(), Name: e.Path},
			To: e.Shown, Size: e.Size, Rest: "Read all of it first."})
	}
	return parts
}

// partsOf returns the parts of texts that the action's result shows. A result that was cut when it was recorded shows
// none. Neither does a result from an earlier segment of the session, because the model no longer sees it.
func partsOf(s *run.State, t *tool.Tool, a *run.Action) []tool.Part {
	parts := t.Shows(a.Args, a.Result)
	before, _ := s.Segment()
	for i := range parts {
		if a.Truncated || s.Plan != nil && a.Turn <= before {
			parts[i].To = parts[i].From
		}
	}
	return parts
}

// missingOf describes the bytes of the text's newest version that the model has not seen. It also returns the newest
// part.
func missingOf(text tool.Text, parts []tool.Part) (missing string, newest tool.Part) {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p tool.Part) bool { return !p.Is(text) })
	if len(parts) == 0 {
		return "", newest
	}
	if slices.ContainsFunc(parts, func(p tool.Part) bool { return !p.Excerpt }) {
		parts = slices.DeleteFunc(parts, func(p tool.Part) bool { return p.Excerpt })
	}
	newest = parts[len(parts)-1]
	parts = slices.DeleteFunc(parts, func(p tool.Part) bool { return p.Version != newest.Version })
	if newest.Lost != "" {
		return newest.Lost, newest
	}
	slices.SortFunc(parts, func(a, b tool.Part) int { return a.From - b.From })
	var gaps []string
	at := 0
	for _, p := range append(parts, tool.Part{From: newest.Size, To: newest.Size}) {
		if p.From > at {
			gaps = append(gaps, fmt.Sprintf("bytes %d to %d of %d", at, p.From, newest.Size))
		}
		at = max(at, p.To)
	}
	return strings.Join(gaps, ", "), newest
}
