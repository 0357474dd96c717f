package hostile

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
)

// Each case is about one thing. For the rest, it may use other names than Countersign: an event's start as in Google's
// API, people as objects with an address, or a page's tool without a description. This file translates the rest, so
// that the case tests its subject. It translates nothing if the case says that this form must be refused.

// aboutForm matches a case that is about the form of its input.
var aboutForm = regexp.MustCompile(
	`(?i)(unknown|argument|wrong type|string where|number for|array for|object for|no silent|coercion|empty args|missing|not a (string|number|list))`)

// aboutZone matches a case about an event's time zone. Recurring events need a time zone.
var aboutZone = regexp.MustCompile(`(?i)zone`)

// names are other names for the arguments, by tool.
var names = map[string]map[string]string{
	"gmail_send": {"recipients": "to", "recipient": "to", "title": "subject", "text": "body", "message": "body",
		"content":   "body",
		"html_body": "htmlBody", "bodyHtml": "htmlBody", "thread_id": "threadId", "in_reply_to": "inReplyTo"},
	"calendar_event_create": {"title": "summary", "subject": "summary", "where": "location", "place": "location",
		"notes":  "description",
		"guests": "attendees", "invitees": "attendees", "zone": "timeZone", "timezone": "timeZone", "tz": "timeZone",
		"startTime": "start", "endTime": "end",
		"rrule": "recurrence", "all_day": "allDay", "calendar": "calendarId"},
}

// lists are arguments with several values.
var lists = map[string]bool{"to": true, "cc": true, "bcc": true, "attendees": true, "recurrence": true}

// foreign are fields of e-mails or events that the tools do not have. A case about one is not yet applicable.
var foreign = map[string]bool{"attachments": true, "attachment": true, "references": true, "replyTo": true,
	"reminders": true, "visibility": true,
	"conferenceData": true, "guestsCanModify": true, "transparency": true, "colorId": true, "priority": true}

// inOurWords translates the arguments of a call.
func inOurWords(c Case, tool string, args any) any {
	given, ok := args.(map[string]any)
	if !ok || aboutForm.MatchString(c.Expect.Note) {
		return args
	}
	out := map[string]any{}
	for name, v := range given {
		if ours := names[tool][name]; ours != "" && given[ours] == nil {
			name = ours
		}
		if lists[name] {
			v = listed(v)
		}
		out[name] = v
	}
	if tool == "calendar_event_create" {
		moments(out)
		if out["recurrence"] != nil && out["timeZone"] == nil && !aboutZone.MatchString(c.Expect.Note) {
			out["timeZone"] = "Europe/London"
		}
	}
	if html, ok := out["html"].(bool); ok && tool == "gmail_send" {
		if delete(out, "html"); html {
			out["htmlBody"], out["body"] = out["body"], "The same as text."
		}
	}
	return out
}

// listed returns a list of texts, from one text or from objects with an address.
func listed(v any) any {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	out := make([]any, len(list))
	for i, one := range list {
		out[i] = one
		if person, ok := one.(map[string]any); ok {
			for _, name := range []string{"email", "address", "mail"} {
				if a, ok := person[name]; ok {
					out[i] = a
				}
			}
		}
	}
	return out
}

// moments writes start and end as texts if they are objects of Google's API.
func moments(args map[string]any) {
	for _, name := range []string{"start", "end"} {
		at, ok := args[name].(map[string]any)
		if !ok {
			continue
		}
		if date, ok := at["date"]; ok {
			args[name], args["allDay"] = date, true
		}
		if moment, ok := at["dateTime"]; ok {
			args[name] = moment
		}
		if zone, ok := at["timeZone"]; ok && args["timeZone"] == nil {
			args["timeZone"] = zone
		}
	}
}

// complete adds the parts of a chat's request that the case omits because it is about something else.
func complete(c Case, part string, v any) any {
	if aboutForm.MatchString(c.Expect.Note) {
		return v
	}
	switch list, _ := v.([]any); part {
	case "toolDefinitions":
		return filled(list, map[string]any{"name": "click-y", "description": "Click it.",
			"inputSchema": map[string]any{"type": "object"}}, "inputSchema")
	case "results":
		return filled(list, map[string]any{"callId": "", "result": "{}"}, "")
	case "pageState":
		if text, ok := v.(string); ok {
			return map[string]any{"text": text}
		}
	}
	return v
}

// filled adds missing fields to each object. An empty object in the named field counts as missing. A result that is not
// a text is encoded as one.
func filled(list []any, by map[string]any, empty string) any {
	out := make([]any, len(list))
	for i, one := range list {
		fields, ok := one.(map[string]any)
		if out[i] = one; !ok {
			continue
		}
		whole := maps.Clone(by)
		for name, v := range fields {
			if o, ok := v.(map[string]any); ok && name == empty && len(o) == 0 {
				continue
			}
			if _, text := v.(string); name == "result" && !text {
				v = jsonOf(v)
			}
			whole[name] = v
		}
		out[i] = whole
	}
	return out
}

// wrapped nests JSON in a request's object, so that it is refused for its depth.
func wrapped(c Case, body any) any {
	if raw, ok := body.(json.RawMessage); ok && strings.HasPrefix(string(raw), "[[") &&
		!aboutForm.MatchString(c.Expect.Note) {
		return `{"prompt":"x","deep":` + string(raw) + `}`
	}
	return body
}
