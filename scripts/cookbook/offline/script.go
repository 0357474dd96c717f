package offline

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// turn is one answer of a story. It can depend on the results of the calls before it.
type turn func(returned []string) fakegemini.Turn

// stories are the answers to the cookbook's prompts, by words that identify the prompt.
var stories = map[string][]turn{
	"How is Lisbon?": {
		calls("get_weather", map[string]any{"city": "Lisbon"}),
		func(returned []string) fakegemini.Turn {
			var weather struct{ Celsius float64 }
			if json.Unmarshal([]byte(strings.Join(returned, "")), &weather) != nil {
				return fakegemini.Turn{Text: strings.Join(returned, "")}
			}
			return fakegemini.Turn{Text: fmt.Sprintf("%g degrees.", weather.Celsius)}
		},
	},
	"Check the three pumps": {
		calls("check_pump", map[string]any{"number": 1}),
		calls("check_pump", map[string]any{"number": 2}),
		calls("check_pump", map[string]any{"number": 3}),
		says("All three pumps were checked; the last one: %s."),
	},
	"What does mail/17.txt ask us to pay?": {
		calls("read_file", map[string]any{"path": "mail/17.txt"}),
		calls("final_answer", map[string]any{"from": "ACME", "euros": 12.5, "due": "2027-06-01"}),
	},
	"And the second one?": {says("You had it checked before: it runs smoothly.")},
	"the demo is at ten": {
		calls("send_mail", map[string]any{"To": "ana@example.com", "Text": "The demo is at ten."}),
		says("The answer about the mail was: %s."),
	},
	"Note that the demo moved.": {
		calls("notes_add", map[string]any{"Text": "The demo is at eleven."}),
		calls("notes_list", map[string]any{}),
		func(returned []string) fakegemini.Turn {
			var notes struct{ Text string }
			if json.Unmarshal([]byte(strings.Join(returned, "")), &notes) != nil || notes.Text == "" {
				return fakegemini.Turn{Text: "You have no notes."}
			}
			return fakegemini.Turn{Text: "You have one note: " + notes.Text}
		},
	},
	"What is new in version 1.2?": {
		calls("activate_skill", map[string]any{"name": "release-notes"}),
		calls("read_skill_file", map[string]any{"skill": "release-notes", "path": "references/style.md"}),
		calls("tag", map[string]any{"Version": "1.2"}),
		calls("list_changes", map[string]any{"Version": "1.2"}),
		says("You can export as CSV. Invitations show the right time. (All changes: %s)"),
	},
}

func calls(name string, args any) turn {
	return func([]string) fakegemini.Turn {
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: name, Args: args}}}
	}
}

// says returns a turn with words and the result of the last call.
func says(format string) turn {
	return func(returned []string) fakegemini.Turn {
		if !strings.Contains(format, "%s") {
			return fakegemini.Turn{Text: format}
		}
		return fakegemini.Turn{Text: fmt.Sprintf(format, strings.Join(returned, ", "))}
	}
}

// answer is the scripted model. It returns the next turn of the prompt's story.
func answer(req fakegemini.Request) fakegemini.Turn {
	asked, n := req.User(), 0
	for _, c := range req.Contents {
		switch {
		case c.Role == "model":
			n++
		case c.Parts[0].FunctionResponse == nil:
			n = 0
		}
	}
	for words, story := range stories {
		if strings.Contains(asked, words) && n < len(story) {
			return story[n](returned(req))
		}
	}
	return fakegemini.Turn{Text: "I am a script and know only the prompts of the cookbook. A key for the real Gemini " +
		"is set with GEMINI_API_KEY."}
}

// returned describes the results of the calls at the end of the request.
func returned(req fakegemini.Request) (all []string) {
	for _, r := range req.Responses() {
		var said struct {
			Output json.RawMessage `json:"output"`
			Error  string          `json:"error"`
		}
		if json.Unmarshal(r.Response, &said) != nil || said.Error != "" {
			all = append(all, said.Error)
			continue
		}
		text := string(said.Output)
		_ = json.Unmarshal(said.Output, &text) // other values stay JSON
		all = append(all, text)
	}
	return all
}
