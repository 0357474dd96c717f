package skill

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/clip"
)

// The lines in front of what is carried over. By them it is read when it is carried over again.
const (
	namesBefore = "These skills were activated before: "
	namesAfter  = ". For the text of one of them call " + Activate + " again.\n"
	textBefore  = "This skill was activated last, and still counts: "
)

// Carry returns what is told of activated skills beside a summary that takes the place of the contents: the text of the
// one that was activated last, as it was recorded, and the names of the others. carried is what it returned of the
// contents before them. A text that is longer than maxBytes allows is cut.
func Carry(dropped []json.RawMessage, carried string, maxBytes int) string {
	names, last, text := carriedBefore(carried)
	for _, raw := range dropped {
		if !strings.Contains(string(raw), Activate) {
			continue
		}
		responses, err := model.Responses(raw)
		if err != nil {
			continue // words that speak of it
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

// carriedBefore reads what Carry returned.
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
