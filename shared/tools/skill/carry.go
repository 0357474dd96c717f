package skill

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/clip"
)

// The lines that introduce the carried text. [Carry] recognises them when it carries the text again.
const (
	namesBefore = "These skills were activated before: "
	namesAfter  = ". For the text of one of them call " + Activate + " again.\n"
	textBefore  = "This skill was activated last, and still counts: "
)

// Carry returns the information about activated skills that accompanies a summary of the dropped contents: the recorded
// text of the skill that was activated last, and the names of the others. carried is the result of Carry for earlier
// contents. A text longer than maxBytes is cut.
func Carry(dropped []json.RawMessage, carried string, maxBytes int) string {
	names, last, text := carriedBefore(carried)
	for _, raw := range dropped {
		if !strings.Contains(string(raw), Activate) {
			continue
		}
		responses, err := model.Responses(raw)
		if err != nil {
			continue // it only mentions the tool
		}
		for _, r := range responses {
			if name, recorded := Activated(r.Name, r.Result); name != "" {
				names, last, text = append(names, last), name, recorded
			}
		}
	}
	if last == "" {
		return clip.Text(carried, maxBytes)
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names),
		func(n string) bool { return n == last || !validName.MatchString(n) })
	head := ""
	if len(names) > 0 {
		head = namesBefore + strings.Join(names, ", ") + namesAfter
	}
	head += textBefore + last + "\n"
	return clip.Text(head+text, maxBytes)
}

// carriedBefore parses a result of Carry.
func carriedBefore(carried string) (names []string, last, text string) {
	if rest, ok := strings.CutPrefix(carried, namesBefore); ok {
		list, rest, _ := strings.Cut(rest, namesAfter)
		names, carried = strings.Split(list, ", "), rest
	}
	if rest, ok := strings.CutPrefix(carried, textBefore); ok {
		last, text, _ = strings.Cut(rest, "\n")
	}
	return names, last, text
}
