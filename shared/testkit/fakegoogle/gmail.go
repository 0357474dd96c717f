package fakegoogle

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// draft is an unsent message. Its message has an ID of its own, which changes with each edit.
type draft struct {
	ID      string  `json:"id"`
	Message message `json:"message"`
}

// message is a stored message, including the Bcc recipients, which its owner may read.
type message struct {
	ID     string    `json:"id"`
	User   string    `json:"user"`
	Thread string    `json:"thread"`
	Label  string    `json:"label"`  // DRAFT, SENT or INBOX: the initial label
	Labels []string  `json:"labels"` // nil until they are changed: Label, and UNREAD for a received one
	Raw    []byte    `json:"raw"`
	At     time.Time `json:"at"`
}

// wireMessage and wireDraft are a client's request bodies.
type wireMessage struct {
	Raw      string `json:"raw"`
	ThreadID string `json:"threadId"`
}

type wireDraft struct {
	ID      string       `json:"id"`
	Message *wireMessage `json:"message"`
}

func (s *Server) getProfile(r request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]any{"emailAddress": r.email, "messagesTotal": len(s.sentBy(r.email)),
		"threadsTotal": len(s.sentBy(r.email)), "historyId": s.id("")}, nil
}

func (s *Server) createDraft(r request) (any, *apiError) {
	var in wireDraft
	if e := decodeWith(r, &in, &in.Message); e != nil {
		return nil, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &draft{ID: "r" + strconv.FormatUint(s.count(), 10)}
	return s.putDraft(r, d, in.Message)
}

func (s *Server) updateDraft(r request) (any, *apiError) {
	var in wireDraft
	if e := decode(r, &in); e != nil {
		return nil, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.draftOf(r.email, r.PathValue("id"))
	if d == nil {
		return nil, notFound()
	}
	return s.putDraft(r, &draft{ID: d.ID}, in.Message)
}

func (s *Server) putDraft(r request, d *draft, in *wireMessage) (any, *apiError) {
	m, e := s.newMessage(r, in, "DRAFT")
	if e != nil {
		return nil, e
	}
	d.Message = *m
	if e := s.commit(record{PutDraft: d}); e != nil {
		return nil, e
	}
	return d.answer("minimal", nil)
}

func (s *Server) getDraft(r request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.draftOf(r.email, r.PathValue("id"))
	if d == nil {
		return nil, notFound()
	}
	return d.answer(cmp.Or(r.FormValue("format"), "full"), r.Form["metadataHeaders"])
}

func (s *Server) listDrafts(r request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []any{}
	for _, id := range slices.Sorted(maps.Keys(s.state.drafts)) {
		if d := s.draftOf(r.email, id); d != nil {
			list = append(list, map[string]any{"id": id, "message": d.Message.reference()})
		}
	}
	return map[string]any{"drafts": list, "resultSizeEstimate": len(list)}, nil
}

func (s *Server) deleteDraft(r request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.draftOf(r.email, r.PathValue("id"))
	if d == nil {
		return nil, notFound()
	}
	return nil, s.commit(record{DropDraft: d.ID})
}

// sendDraft replaces the draft with a sent message that has a new ID, in one change.
func (s *Server) sendDraft(r request) (any, *apiError) {
	var in wireDraft
	if e := decodeWith(r, &in, &in.Message); e != nil {
		return nil, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.draftOf(r.email, in.ID)
	if d == nil {
		return nil, notFound()
	}
	w := &wireMessage{Raw: base64.URLEncoding.EncodeToString(d.Message.Raw), ThreadID: d.Message.Thread}
	if in.Message != nil && in.Message.Raw != "" {
		w = in.Message
	}
	return s.deliver(r, w, d.ID)
}

func (s *Server) sendMessage(r request) (any, *apiError) {
	in := &wireMessage{}
	if e := decodeWith(r, in, &in); e != nil {
		return nil, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deliver(r, in, "")
}

func (s *Server) deliver(r request, in *wireMessage, draftID string) (any, *apiError) {
	m, e := s.newMessage(r, in, "SENT")
	if e != nil {
		return nil, e
	}
	if e := deliverable(m.Raw); e != nil {
		return nil, e
	}
	if e := s.commit(record{PutMessage: m, DropDraft: draftID, Received: s.copies(m)}); e != nil {
		return nil, e
	}
	return m.reference(), nil
}

// copies returns the copies for the message's recipients that have a mailbox here.
func (s *Server) copies(m *message) (all []*message) {
	sent := m.public()
	for _, to := range slices.Concat(sent.To, sent.Cc, sent.Bcc) {
		if s.opts.Delivers != nil && s.opts.Delivers(to) {
			all = append(all, s.received(to, m.Raw))
		}
	}
	return all
}

// received returns a new message in a user's inbox.
func (s *Server) received(email string, raw []byte) *message {
	id := s.id("18c")
	m := &message{ID: id, User: email, Thread: id, Label: "INBOX", Raw: withoutBcc(raw), At: s.opts.Now().UTC()}
	m.Thread = cmp.Or(s.threadOf(m), id)
	return m
}

// threadOf returns the conversation of the e-mail that a received one answers, by its header References or In-Reply-To.
func (s *Server) threadOf(m *message) string {
	answers := strings.Fields(m.header("References") + " " + m.header("In-Reply-To"))
	for _, other := range s.allOf(m.User) {
		if id := other.header("Message-Id"); id != "" && slices.Contains(answers, id) {
			return other.Thread
		}
	}
	return ""
}

// Receive adds a message (RFC 5322) to a user's inbox, as if someone elsewhere had sent it.
func (s *Server) Receive(email string, raw []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.commit(record{Received: []*message{s.received(email, raw)}}); e != nil {
		return errors.New(e.message)
	}
	return nil
}

// Newest returns the ID of the newest message that a user has received.
func (s *Server) Newest(email string) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.state.received {
		if m.User == email {
			id = m.ID
		}
	}
	return id
}

// newMessage returns the message with the headers that Gmail adds, and a new ID.
func (s *Server) newMessage(r request, in *wireMessage, label string) (*message, *apiError) {
	if in == nil || in.Raw == "" {
		return nil, badRequest("'raw' RFC822 payload message string or uploading message via /upload/* URL required")
	}
	raw, err := base64.URLEncoding.WithPadding(base64.NoPadding).DecodeString(strings.TrimRight(in.Raw, "="))
	if err != nil {
		return nil, badRequest("Invalid value for ByteString: raw")
	}
	id := s.id("18c")
	stamped, err := stamp(raw, s.sender(r.email, raw), "<"+id+"@mail.gmail.com>", s.opts.Now())
	if err != nil {
		return nil, badRequest("The message is not valid by RFC 822.")
	}
	return &message{ID: id, User: r.email, Thread: cmp.Or(in.ThreadID, id), Label: label, Raw: stamped,
		At: s.opts.Now().UTC()}, nil
}

// count returns a new number. The caller holds the lock and commits.
func (s *Server) count() uint64 {
	s.state.next++
	return s.state.next
}

// id returns 16 hexadecimal digits, like Gmail's IDs. Without a prefix, it only reads the counter.
func (s *Server) id(prefix string) string {
	if prefix == "" {
		return strconv.FormatUint(s.state.next, 10)
	}
	return fmt.Sprintf("%s%0*x", prefix, 16-len(prefix), s.count())
}

// meddle acts as the draft's owner, who edits the draft in another window.
func (s *Server) meddle(k Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, d := range s.state.drafts {
		if k == DraftDeleted {
			_ = s.commit(record{DropDraft: id})
			continue
		}
		edited := *d
		edited.Message.ID = s.id("18c")
		edited.Message.Raw = append(slices.Clone(d.Message.Raw), "PS: one more line\r\n"...)
		_ = s.commit(record{PutDraft: &edited})
	}
}

// alterSent changes the message that Gmail sends, so that it differs from the draft.
func (s *Server) alterSent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.state.messages) - 1; last >= 0 {
		altered := *s.state.messages[last]
		altered.Raw = append(slices.Clone(altered.Raw), "PS: one more line\r\n"...)
		s.state.messages[last] = &altered
	}
}

func decode(r request, into any) *apiError {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return &apiError{status: http.StatusRequestEntityTooLarge, reason: "uploadTooLarge",
			message: "The request is too large."}
	}
	if err := json.Unmarshal(b, into); err != nil {
		return badRequest("Invalid JSON payload received.")
	}
	return nil
}
