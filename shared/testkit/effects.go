package testkit

import (
	"encoding/json"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
)

// Effects returns what Gmail and Calendar have carried out, each with the action that it bears.
func (c *Cloud) Effects() []invariants.Effect {
	return c.effects(func(string) bool { return true })
}

// EffectsOf returns the effects for one user.
func (c *Cloud) EffectsOf(uid string) []invariants.Effect {
	return c.effects(func(address string) bool { return address == Address(uid) })
}

func (c *Cloud) effects(of func(address string) bool) (all []invariants.Effect) {
	for _, m := range c.Google.Messages() {
		if !of(m.User) {
			continue
		}
		all = append(all, invariants.Effect{UID: uidOf(m.User), ActionID: actionOf(m.Raw),
			Agrees: func(args json.RawMessage) error { return sent(m, args) }})
	}
	for _, e := range c.Google.Events() {
		if !of(text(e["user"])) {
			continue
		}
		all = append(all, invariants.Effect{UID: uidOf(text(e["user"])), ActionID: propertyOf(e),
			Agrees: func(args json.RawMessage) error { return made(e, args) }})
	}
	return all
}

func uidOf(address string) string { return strings.TrimSuffix(address, "@example.com") }

// actionOf reads the action's id from a message's own header.
func actionOf(raw string) string {
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		return ""
	}
	return m.Header.Get("X-Countersign-Action")
}

func propertyOf(e fakegoogle.Event) string {
	properties, _ := e["extendedProperties"].(map[string]any)
	private, _ := properties["private"].(map[string]any)
	return text(private["countersignAction"])
}

func text(v any) string { s, _ := v.(string); return s }

// sent compares a sent message with arguments of gmail_send.
func sent(m fakegoogle.Message, args json.RawMessage) error {
	var a struct {
		To, Cc, Bcc   []string
		Subject, Body string
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return err
	}
	same := slices.Equal(m.To, a.To) && slices.Equal(m.Cc, a.Cc) && slices.Equal(m.Bcc, a.Bcc)
	if !same || m.Subject != a.Subject ||
		strings.TrimSpace(strings.ReplaceAll(m.Text, "\r\n", "\n")) != strings.TrimSpace(a.Body) {
		return fmt.Errorf("the message %s is not the one that was approved", m.ID)
	}
	return nil
}

// made compares an event with arguments of calendar_event_create.
func made(e fakegoogle.Event, args json.RawMessage) error {
	var a struct {
		Summary, Start, End, Description, Location string
		Attendees                                  []string
		AllDay                                     bool
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return err
	}
	same := text(e["summary"]) == a.Summary && text(e["description"]) == a.Description &&
		text(e["location"]) == a.Location && slices.Equal(guests(e), a.Attendees)
	if !same || !a.AllDay && (!sameTime(e["start"], a.Start) || !sameTime(e["end"], a.End)) {
		return fmt.Errorf("the event %s is not the one that was approved", text(e["id"]))
	}
	return nil
}

func guests(e fakegoogle.Event) (out []string) {
	list, _ := e["attendees"].([]any)
	for _, g := range list {
		guest, _ := g.(map[string]any)
		out = append(out, text(guest["email"]))
	}
	return out
}

// sameTime compares moments where both have an offset, and texts elsewhere.
func sameTime(got any, want string) bool {
	at, _ := got.(map[string]any)
	g, err := time.Parse(time.RFC3339, text(at["dateTime"]))
	w, failed := time.Parse(time.RFC3339, want)
	if err != nil || failed != nil {
		return text(at["dateTime"]) == want
	}
	return g.Equal(w)
}
