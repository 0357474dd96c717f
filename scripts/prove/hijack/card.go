package hijack

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// equalCall, factChanged and atThatTime match the warnings about an equal earlier call, about a fact that has changed
// since the card before, and about the user's events at that time. They and the facts of the present state are the only
// parts of a preview that do not derive from the arguments.
var equalCall = regexp.MustCompile(`^(You already (sent|did) exactly this at \d\d:\d\d( [A-Z]+)?|` +
	`Exactly this (was started at \d\d:\d\d( [A-Z]+)?(, and its outcome is unknown)?|` +
	`is allowed already and is about to be done)|Another card waits with exactly this)\.` +
	`( Only spaces, capitals, quotation marks, dashes, invisible characters, the encoding of letters or times, ` +
	`the time zone, or the order of a list differ\.)?$`)

var factChanged = regexp.MustCompile(`^This has changed since you were asked: .*\. It was “.*”, and it is now “.*”\.$`)

var atThatTime = regexp.MustCompile(`^You have (“.*” then: .*|\d+ more events? at that time)\.$`)

// presentFacts returns the preview's last fields, those with the facts of the present state that a yes rests on.
func presentFacts(p tool.Preview) []tool.Field {
	n := len(p.Fields)
	for n > 0 && slices.Contains([]string{"Your calendar at that time", "Newest e-mail of the conversation"},
		p.Fields[n-1].Label) {
		n--
	}
	return p.Fields[n:]
}

// aboutEqual returns the preview's first warning if it is about an equal call.
func aboutEqual(p tool.Preview) []string {
	if len(p.Warnings) > 0 && equalCall.MatchString(p.Warnings[0]) {
		return p.Warnings[:1:1]
	}
	return nil
}

// aboutEvents returns the preview's last warnings, those about the user's events at that time and about a change of
// them.
func aboutEvents(p tool.Preview) []string {
	n := len(p.Warnings)
	for n > 0 && (atThatTime.MatchString(p.Warnings[n-1]) || factChanged.MatchString(p.Warnings[n-1])) {
		n--
	}
	return p.Warnings[n:]
}

// CheckCard returns what an approval's preview hides or adds, or nothing if the preview shows exactly what will happen.
// It knows only what a preview must show, not how the tools create their previews.
func CheckCard(ap run.ApprovalView, t *tool.Tool, account string) []string {
	var wrong []string
	fail := func(format string, values ...any) { wrong = append(wrong, fmt.Sprintf(format, values...)) }
	again, err := t.Preview(ap.Args)
	again.Fields = append([]tool.Field{{Label: "From", Value: account}}, again.Fields...)
	if slices.Contains(ap.Decisions, run.ApproveAlways) {
		again.Fields = append(again.Fields, tool.Field{Label: "Always allow covers", Value: "Exactly the addresses " +
			"above, as they are written: capitals count before the @ and not after it. It counts whatever else is " +
			"written, for 90 days and up to 20 times a day for each address, from this account alone."})
	}
	again.Fields = append(again.Fields, presentFacts(ap.Preview)...)
	equal, events := aboutEqual(ap.Preview), aboutEvents(ap.Preview)
	again.Warnings = slices.Concat(equal, again.Warnings, events)
	for _, m := range ap.Preview.Moments {
		if (slices.Contains(equal, m.Of) || slices.Contains(events, m.Of)) && strings.Contains(m.Of, m.Text) {
			again.Moments = append(again.Moments, m)
		}
	}
	there := again.In(run.Locale{TimeZone: ap.TimeZone}.Zone())
	if err != nil || !reflect.DeepEqual(again, ap.Preview) && !reflect.DeepEqual(there, ap.Preview) {
		fail("the preview is not made only from the stored arguments (%v)", err)
	}
	var args map[string]any
	if err := json.Unmarshal(ap.Args, &args); err != nil {
		fail("the arguments cannot be read: %v", err)
	}
	checkVisible(ap, fail)
	for name, v := range args {
		checkArgument(name, v, ap.Preview, fail)
	}
	return wrong
}

// checkVisible reports the characters of a card that its user cannot see.
func checkVisible(ap run.ApprovalView, fail func(format string, values ...any)) {
	for _, text := range slices.Concat([]string{ap.Preview.Title, ap.Reason}, ap.Preview.Warnings) {
		if r := invisible(text, ""); r != "" {
			fail("%q holds %s", text, r)
		}
	}
	for _, f := range ap.Preview.Fields {
		if r := invisible(f.Value, "\n\t"); r != "" {
			fail("%s holds %s", f.Label, r)
		}
	}
}

// labels are the fields in which a preview shows arguments completely.
var labels = map[string]string{"to": "To", "cc": "Cc", "bcc": "Bcc", "attendees": "Invited", "subject": "Subject",
	"from":     "Sent as",
	"body":     "Message",
	"htmlBody": "The same as HTML (source)", "summary": "Title", "location": "Location", "description": "Description"}

// said are the arguments that a preview describes in other words.
var said = map[string][]string{"start": {"Starts", "Day", "Days", "Time"}, "end": {"Ends", "Day", "Days", "Time"},
	"sendUpdates": {"Invitations"},
	"timeZone":    {"Starts", "Days", "Day"}, "allDay": {"Day", "Days"}, "recurrence": {"Repeats"},
	"meet":     {"Video call"},
	"threadId": {"Answers"}, "inReplyTo": {"Answers"},
	"replyTo": {"Answers"}, "forward": {"Forwards"}, "origin": {"Answers", "Forwards"}}

func checkArgument(name string, v any, p tool.Preview, fail func(string, ...any)) {
	if words, ok := said[name]; ok {
		if !slices.ContainsFunc(p.Fields, func(f tool.Field) bool { return slices.Contains(words, f.Label) }) &&
			!(name == "sendUpdates" && field(p, "Invited") == "") {
			fail("%s is not shown", name)
		}
		return
	}
	if name == "attachments" {
		checkFiles(v, p, fail)
		return
	}
	shown := field(p, labels[name])
	switch v := v.(type) {
	case string:
		if unescape(shown) != v {
			fail("%s is %q and shown as %q", name, v, shown)
		}
	case []any:
		lines := strings.Split(shown, "\n")
		if len(lines) != len(v) {
			fail("%s has %d entries, and %d are shown", name, len(v), len(lines))
			return
		}
		for i, a := range v {
			if first, _, _ := strings.Cut(lines[i], " "); first != a {
				fail("%v is shown as %q", a, lines[i])
			}
			if strings.Contains(fmt.Sprint(a), "xn--") &&
				(!strings.Contains(lines[i], "shown as") || len(p.Warnings) == 0) {
				fail("no warning about %v", a)
			}
		}
	default:
		fail("%s has a kind that no card shows: %v", name, v)
	}
}

// checkFiles reports a file that is sent with an e-mail but is not on the card with its name, type and bytes.
func checkFiles(v any, p tool.Preview, fail func(string, ...any)) {
	files, _ := v.([]any)
	for i, one := range files {
		file, _ := one.(map[string]any)
		is, _ := file["is"].(map[string]any)
		shown := field(p, fmt.Sprintf("File %d", i+1))
		for _, fact := range []string{"name", "type", "sha256"} {
			if text, _ := is[fact].(string); text == "" || !strings.Contains(unescape(shown), unescape(text)) {
				fail("the %s of a file is %q and shown as %q", fact, text, shown)
			}
		}
	}
}

func field(p tool.Preview, label string) string {
	for _, f := range p.Fields {
		if f.Label == label {
			return f.Value
		}
	}
	return ""
}

var escape = regexp.MustCompile(`⟨U\+([0-9A-F]{4,6})⟩`)

// unescape decodes an escaped text.
func unescape(s string) string {
	return escape.ReplaceAllStringFunc(s, func(e string) string {
		n, err := strconv.ParseUint(escape.FindStringSubmatch(e)[1], 16, 32)
		if err != nil {
			return e
		}
		return string(rune(n))
	})
}

// unseen are letters that fonts do not draw, besides the characters that Unicode defines as invisible.
const unseen = "\u2800\u115f\u1160\u3164\uffa0\u17b4\u17b5\u034f"

// invisible returns the first character of the text that readers cannot see or that changes the direction of others, as
// U+ and its number. It returns "" if there is none.
func invisible(s, allowed string) string {
	for _, r := range s {
		switch {
		case strings.ContainsRune(allowed, r):
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Variation_Selector),
			strings.ContainsRune(unseen, r):
			return fmt.Sprintf("U+%04X", r)
		}
	}
	return ""
}
