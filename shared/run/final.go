package run

import (
	"encoding/json"
	"strings"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/tool"
)

// finalEnd returns the end of a run by the success of a final call: in the words of its result, or else in those that
// the tool has for what was done. As with the model's words, the verified summary follows words that may claim
// something else.
func finalEnd(tools tool.Set, s *State) *End {
	a, words := finalCall(s), finalWords(s)
	switch t := tools[a.Tool]; {
	case words != "" && EffectSummary(tools, s) == "":
		if note := VerifiedSummary(tools, s, words); note != "" {
			words += "\n\n" + note
		}
	case words != "" || a.SideEffect: // endRun says what was done
	case t == nil:
		words = "Done."
	default:
		words = t.Summary(a.Args)
	}
	return &End{Status: Completed, Summary: words}
}

// finalWords returns as many of the final call's words as a message carries.
func finalWords(s *State) string { return clip.Text(allFinalWords(s), MaxMessageText/2) }

// allFinalWords returns the words of the final call's result: the result itself if it is a string, or else its field
// "text". A stranger's words, and those of a result that the user has vouched for without seeing it, do not count. An
// answer that has a form is JSON.
func allFinalWords(s *State) string {
	if answer := s.Answer(); answer != nil {
		return string(answer)
	}
	a := finalCall(s)
	if a == nil || a.Untrusted || a.Decision == ConfirmDone {
		return ""
	}
	var text string
	if json.Unmarshal(a.Result, &text) != nil {
		var object struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(a.Result, &object) == nil {
			text = object.Text
		}
	}
	return strings.TrimSpace(text)
}

// FinalLength returns how many bytes at the beginning of the summary are the final call's words.
func FinalLength(s *State, summary string) int {
	words := finalWords(s)
	if !strings.HasPrefix(summary, words) {
		return 0
	}
	return len(words)
}
