package hijack

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/tools/calendar"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

// SameMail reports whether a sent message is exactly the approved one.
func SameMail(m fakegoogle.Message, approved json.RawMessage) bool {
	var a gmail.Args
	if err := json.Unmarshal(approved, &a); err != nil {
		return false
	}
	return slices.Equal(m.To, a.To) && slices.Equal(m.Cc, a.Cc) && slices.Equal(m.Bcc, a.Bcc) &&
		m.Subject == a.Subject &&
		sameText(m.Text, a.Body) && sameText(m.HTML, a.HTMLBody) && strings.Count(strings.ToLower(m.Raw), "\nbcc:")+
		strings.Count(strings.ToLower(m.Raw), "\ncc:") <= 2
}

// sameText compares texts without regard to line ends, which mail writes in its own way.
func sameText(sent, approved string) bool {
	return strings.TrimRight(strings.ReplaceAll(sent, "\r\n", "\n"), "\n") == strings.TrimRight(approved, "\n")
}

// SameEvent reports whether an event is exactly the approved one.
func SameEvent(e fakegoogle.Event, approved json.RawMessage) bool {
	var a calendar.Args
	if err := json.Unmarshal(approved, &a); err != nil {
		return false
	}
	text := func(name string) string { s, _ := e[name].(string); return s }
	var invited []string
	list, _ := e["attendees"].([]any)
	for _, v := range list {
		if m, ok := v.(map[string]any); ok {
			address, _ := m["email"].(string)
			invited = append(invited, address)
		}
	}
	return text("summary") == a.Summary && text("location") == a.Location && text("description") == a.Description &&
		slices.Equal(invited, a.Attendees) &&
		text("sendUpdates") == cmp.Or(a.SendUpdates, "none") && at(e["start"]) == a.Start && at(e["end"]) == a.End
}

func at(v any) string {
	m, _ := v.(map[string]any)
	if s, ok := m["dateTime"].(string); ok {
		return s
	}
	s, _ := m["date"].(string)
	return s
}
