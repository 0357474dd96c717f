package demomodel

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// report describes the outcomes of the calls, from their responses alone.
func report(calls []fakegemini.FunctionCall, responses []fakegemini.FunctionResponse) string {
	said := make([]string, len(responses))
	for i, r := range responses {
		said[i] = outcome(calls[i], r.Response)
	}
	return strings.Join(said, " ")
}

// response is what the responses to the two tools have in common. A response is an object with "error", or holds the
// tool's answer in "output" or "result", or is that answer itself.
type response struct {
	Error     string          `json:"error"`
	Output    json.RawMessage `json:"output"`
	Result    json.RawMessage `json:"result"`
	Executed  json.RawMessage `json:"executedArgs"` // the arguments as the user edited them
	Cancelled bool            `json:"cancelled"`
	Inferred  bool            `json:"inferred"`
	Words     string          `json:"-"` // an answer in words
}

func readResponse(raw json.RawMessage) response {
	var r response
	if err := json.Unmarshal(raw, &r); err != nil {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return response{Words: s}
		}
		return response{Error: "The tool's answer is unclear."}
	}
	for _, inner := range []json.RawMessage{r.Output, r.Result} {
		if inner == nil {
			continue
		}
		in := readResponse(inner)
		r.Error, r.Words = r.Error+in.Error, r.Words+in.Words
		r.Cancelled, r.Inferred = r.Cancelled || in.Cancelled, r.Inferred || in.Inferred
		if in.Executed != nil {
			r.Executed = in.Executed
		}
	}
	return r
}

var (
	rejected = regexp.MustCompile(`(?i)^the user rejected this\b[^.]*\.?\s*`)
	notKnown = regexp.MustCompile(`(?i)^it is not known whether this was done\.\s*`)
	unknown  = regexp.MustCompile(`(?i)\b(?:nobody can tell|unknown|not known|cannot be known|unclear)\b`)
)

func outcome(c fakegemini.FunctionCall, raw json.RawMessage) string {
	r := readResponse(raw)
	args := c.Args
	if r.Executed != nil {
		args = r.Executed
	}
	what, done := describe(c.Name, args)
	return sayOutcome(what, done, r)
}

// sayOutcome describes whether it was done.
func sayOutcome(what, done string, r response) string {
	switch {
	case r.Error != "" && rejected.MatchString(r.Error):
		comment := r.Error[len(rejected.FindString(r.Error)):]
		return join(capitalise(what)+" was not "+done+": you rejected it.", comment)
	case r.Error != "" && unknown.MatchString(r.Error):
		return join("It is not known whether "+what+" was "+done+".", r.Error[len(notKnown.FindString(r.Error)):])
	case r.Error != "":
		return capitalise(what) + " was not " + done + ". " + r.Error
	case r.Cancelled:
		return capitalise(what) + " was " + done + ", and was deleted again by its owner."
	case r.Executed != nil:
		return capitalise(what) + " was " + done + ", with your changes."
	case strings.Contains(strings.ToLower(r.Words), "confirmed"):
		return capitalise(what) + " was " + done + ", as you confirmed."
	case r.Inferred:
		return capitalise(what) + " was " + done + ", as far as can be told: its draft is gone."
	}
	return capitalise(what) + " was " + done + "."
}

// describe returns the subject of a call, and the word for its being done.
func describe(tool string, raw json.RawMessage) (what, done string) {
	var a struct {
		To, Cc, Bcc []string
		Summary     string
		Start       string
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return "what was asked for", "done"
	}
	switch tool {
	case mailTool:
		return "the mail to " + list(append(append(a.To, a.Cc...), a.Bcc...)), "sent"
	case eventTool:
		return "the event “" + a.Summary + "” on " + strings.Replace(a.Start, "T", " at ", 1), "created"
	}
	return "what was asked for", "done"
}

func list(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "nobody"
	case n > 3:
		return strings.Join(names[:2], ", ") + " and others"
	case n > 1:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return names[0]
}

func join(a, b string) string { return strings.TrimSpace(a + " " + b) }
