package emulate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/mail"
	"net/textproto"
	"net/url"
	"strings"
)

// metadata answers messages.get and threads.get. The emulator returns a fixed set of header fields; other requested
// ones are read from the raw message.
func (e *Emulator) metadata(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	rec := e.ask(r)
	if rec.Code != http.StatusOK || query.Get("format") != "metadata" {
		replay(w, rec)
		return
	}
	var found map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &found); err != nil {
		replay(w, rec)
		return
	}
	messages := []any{found}
	if list, ok := found["messages"].([]any); ok {
		messages = list
	}
	for _, m := range messages {
		m, _ := m.(map[string]any)
		payload, _ := m["payload"].(map[string]any)
		id, _ := m["id"].(string)
		if payload == nil || id == "" {
			continue
		}
		payload["headers"] = pick(e.header(r, id), query["metadataHeaders"])
	}
	answer(w, http.StatusOK, found)
}

// header returns the header of the message as it was sent, or nil if the emulator does not return it.
func (e *Emulator) header(r *http.Request, id string) mail.Header {
	again := r.Clone(r.Context())
	again.URL = &url.URL{Path: "/gmail/v1/users/me/messages/" + id, RawQuery: "format=raw"}
	var m struct{ Raw string }
	if err := json.Unmarshal(e.ask(again).Body.Bytes(), &m); err != nil {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(m.Raw, "="))
	if err != nil {
		return nil
	}
	read, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return nil
	}
	return read.Header
}

func pick(h mail.Header, names []string) []map[string]string {
	picked := []map[string]string{}
	for _, name := range names {
		for _, value := range h[textproto.CanonicalMIMEHeaderKey(name)] {
			picked = append(picked, map[string]string{"name": name, "value": value})
		}
	}
	return picked
}
