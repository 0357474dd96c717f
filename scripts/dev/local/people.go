package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

// people holds the local users and their addresses.
type people struct {
	file string
	mu   sync.Mutex
	mail map[string]string // addresses by uid
}

func openPeople(file string) (*people, error) {
	p := &people{file: file, mail: map[string]string{}}
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	return p, json.Unmarshal(data, &p.mail)
}

// add stores a user's address durably: it writes a new file and renames it. It reports whether the address changed.
func (p *people) add(uid, email string) (changed bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mail[uid] == email {
		return false, nil
	}
	p.mail[uid] = email
	data, err := json.Marshal(p.mail)
	if err != nil {
		return true, err
	}
	if err := os.WriteFile(p.file+".new", data, 0o600); err != nil {
		return true, err
	}
	return true, os.Rename(p.file+".new", filepath.Clean(p.file))
}

// uid returns the user with an address, or the address itself if it has no user.
func (p *people) uid(email string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, a := range p.mail {
		if a == email {
			return uid
		}
	}
	return email
}

// has reports whether a local user has the address.
func (p *people) has(email string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(p.mail)), email)
}

// localScopes are the scopes of the tools. The scope for reading mail also allows a check, after a crash, of whether an
// e-mail was sent.
var localScopes = []string{"https://www.googleapis.com/auth/gmail.compose",
	"https://www.googleapis.com/auth/gmail.send", "https://www.googleapis.com/auth/gmail.readonly",
	"https://www.googleapis.com/auth/gmail.modify", "https://www.googleapis.com/auth/calendar.events",
	"https://www.googleapis.com/auth/calendar.events.freebusy"}

// The names of local users, without those that a token cannot have (shared/accounts/auth).
var (
	validUID   = lazyregexp.New(`^[A-Za-z0-9_.|:@+-]{1,128}$`)
	invalidUID = lazyregexp.New(`^(\.+|__.*__)$`)
)

func validPerson(uid, email string) error {
	switch {
	case !validUID.MatchString(uid):
		return errors.New("required: a user name of letters, digits and _ . | : @ + -, and an e-mail address")
	case invalidUID.MatchString(uid):
		return errors.New("a user name cannot consist of dots alone, or begin and end with __")
	case !fakegoogle.ValidAddress(email):
		return fmt.Errorf("%q is not an e-mail address", email)
	}
	return nil
}

// signedIn stores a local user who signs in, and links their accounts.
func (s *server) signedIn(uid, email string) error {
	if err := validPerson(uid, email); err != nil {
		return err
	}
	changed, err := s.people.add(uid, email)
	if err != nil {
		return err
	}
	s.link(context.Background(), uid, email, changed)
	s.demo.give(context.Background(), s, uid)
	return nil
}

// token signs a local user in. Only this server has the route, and it listens only on loopback.
func (s *server) token(w http.ResponseWriter, r *http.Request) {
	var in struct {
		UID   string `json:"uid"`
		Email string `json:"email"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4096))
	if err == nil {
		err = strictjson.Decode(body, &in)
	}
	if err == nil && in.Email == "" {
		in.Email = issuer.UsualEmail(in.UID)
	}
	if err == nil {
		err = validPerson(in.UID, in.Email)
	}
	if err != nil {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusBadRequest)
		writeJSON(w, map[string]any{"ok": false, "error": map[string]string{
			"class": "ValidationError", "code": "invalid", "message": err.Error()}})
		return
	}
	token, err := s.issuer.Token(in.UID, in.Email, s.env.get("AUTH_AUDIENCE"), time.Hour)
	if err == nil {
		err = s.signedIn(in.UID, in.Email)
	}
	if err != nil {
		s.app.Log.ErrorContext(r.Context(), "creating a token failed", "error", err)
		http.Error(w, `{"ok":false}`, http.StatusInternalServerError)
		return
	}
	writeJSON(w, map[string]string{"token": token})
}

// mailbox responds with the e-mails that the local Gmail has sent.
func (s *server) mailbox(w http.ResponseWriter, _ *http.Request) {
	messages := s.google.Messages()
	for i := range messages {
		messages[i].User = s.people.uid(messages[i].User)
	}
	writeJSON(w, map[string]any{"messages": messages})
}

// calendar responds with the events of the local Calendar.
func (s *server) calendar(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]any{"events": s.google.Events()})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // a disconnected client is not an error
}
