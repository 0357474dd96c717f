package run

import (
	"encoding/json"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
)

// finalEnd returns the end of a run that a final call completed. Its summary is the text of the call's result, or else
// the tool's own sentence about the call. If that text may make false claims, the verified summary follows it.
func finalEnd(tools tool.Set, s *State) *End {
	a, words := finalCall(s), finalWords(s)
	switch t := tools[a.Tool]; {
	case words != "" && EffectSummary(tools, s) == "":
		if note := VerifiedSummary(tools, s, words); note != "" {
			words += "\n\n" + note
		}
	case words != "" || a.SideEffect: // endRun adds what was done
	case t == nil:
		words = "Done."
	default:
		words = t.Summary(a.Args)
	}
	return &End{Status: Completed, Summary: words}
}

// finalWords returns the final call's text, cut to the size of a message.
func finalWords(s *State) string { return clip.Text(allFinalWords(s), MaxMessageText/2) }

// allFinalWords returns the text of the final call's result: the result itself if it is a string, or else its field
// "text". It returns "" if the text comes from strangers, or if the user confirmed the call without seeing the result.
// A typed answer is returned as JSON.
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

// FinalLength returns the number of bytes at the start of the summary that are the final call's text.
func FinalLength(s *State, summary string) int {
	words := finalWords(s)
	if !strings.HasPrefix(summary, words) {
		return 0
	}
	return len(words)
}
