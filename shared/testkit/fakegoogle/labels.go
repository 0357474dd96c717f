package fakegoogle

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// label is a label that a user created.
type label struct {
	User string `json:"user"`
	ID   string `json:"id"`
	Name string `json:"name"`
}

// systemLabels are Gmail's own labels, whose names are their IDs.
var systemLabels = []string{"CHAT", "SENT", "INBOX", "IMPORTANT", "TRASH", "DRAFT", "SPAM", "STARRED", "UNREAD",
	"CATEGORY_PERSONAL", "CATEGORY_SOCIAL", "CATEGORY_PROMOTIONS", "CATEGORY_UPDATES", "CATEGORY_FORUMS"}

// AddLabel creates a label for a user and returns its ID.
func (s *Server) AddLabel(email, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := label{email, "Label_" + strconv.FormatUint(s.count(), 10), name}
	if e := s.commit(record{PutLabel: &l}); e != nil {
		return "", errors.New(e.message)
	}
	return l.ID, nil
}

// RenameLabel renames a label that a user created.
func (s *Server) RenameLabel(email, from, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range s.state.labels {
		if l.User == email && l.Name == from {
			s.state.labels[i].Name = to
		}
	}
}

// Labels returns the IDs of a message's labels.
func (s *Server) Labels(email, id string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.messageOf(email, id); m != nil {
		return m.labels()
	}
	return nil
}

func (s *Server) messageOf(email, id string) *message {
	for _, m := range s.allOf(email) {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// labels returns the IDs of the message's labels.
func (m *message) labels() []string {
	switch {
	case m.Labels != nil:
		return m.Labels
	case m.Label == "INBOX":
		return []string{"INBOX", "UNREAD"}
	}
	return []string{m.Label}
}

func (m *message) has(label string) bool { return slices.Contains(m.labels(), label) }

// relabel replaces the stored message that has the message's ID.
func (st *state) relabel(to *message) {
	for _, list := range [][]*message{st.messages, st.received} {
		for i, m := range list {
			if m.ID == to.ID {
				list[i] = to
			}
		}
	}
	for _, d := range st.drafts {
		if d.Message.ID == to.ID {
			d.Message = *to
		}
	}
}

func (s *Server) listLabels(r request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []any{}
	for _, id := range systemLabels {
		list = append(list, map[string]any{"id": id, "name": id, "type": "system"})
	}
	for _, l := range s.state.labels {
		if l.User == r.email {
			list = append(list, map[string]any{"id": l.ID, "name": l.Name, "type": "user",
				"messageListVisibility": "show", "labelListVisibility": "labelShow"})
		}
	}
	return map[string]any{"labels": list}, nil
}

// change is a change of labels.
type change struct {
	Add    []string `json:"addLabelIds"`
	Remove []string `json:"removeLabelIds"`
}

func (s *Server) modifyMessage(r request) (any, *apiError) {
	c, e := s.readChange(r)
	if e != nil {
		return nil, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.messageOf(r.email, r.PathValue("id"))
	if m == nil {
		return nil, notFound()
	}
	changed := c.of(m)
	return changed.reference(), s.commit(record{Relabel: changed})
}

// modifyThread changes all messages of a conversation, also those that its client has not seen.
func (s *Server) modifyThread(r request) (any, *apiError) {
	c, e := s.readChange(r)
	if e != nil {
		return nil, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []any{}
	for _, m := range s.allOf(r.email) {
		if m.Thread != r.PathValue("id") {
			continue
		}
		changed := c.of(m)
		if e := s.commit(record{Relabel: changed}); e != nil {
			return nil, e
		}
		list = append(list, changed.reference())
	}
	if len(list) == 0 {
		return nil, notFound()
	}
	return map[string]any{"id": r.PathValue("id"), "messages": list}, nil
}

// readChange refuses labels that do not exist and those that only Gmail sets.
func (s *Server) readChange(r request) (c change, e *apiError) {
	if e := decode(r, &c); e != nil {
		return c, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Concat(c.Add, c.Remove) {
		own := slices.ContainsFunc(s.state.labels, func(l label) bool { return l.User == r.email && l.ID == id })
		if !own && !slices.Contains(systemLabels, id) || id == "SENT" || id == "DRAFT" || id == "CHAT" {
			return c, badRequest("Invalid label: " + id)
		}
		if slices.Contains(c.Add, id) && slices.Contains(c.Remove, id) {
			return c, badRequest("Cannot both add and remove the same label")
		}
	}
	if len(c.Add)+len(c.Remove) == 0 {
		return c, badRequest("No label add or removes specified")
	}
	return c, nil
}

// of returns the message with its new labels.
func (c change) of(m *message) *message {
	changed := *m
	changed.Labels = []string{}
	for _, l := range slices.Concat(m.labels(), c.Add) {
		if !slices.Contains(c.Remove, l) && !slices.Contains(changed.Labels, l) {
			changed.Labels = append(changed.Labels, l)
		}
	}
	slices.SortFunc(changed.Labels, strings.Compare)
	return &changed
}

// Replace gives a message another text. Gmail never changes a message, but the tools must not rely on that.
func (s *Server) Replace(email, id string, raw []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.messageOf(email, id); m != nil {
		changed := *m
		changed.Raw = raw
		s.state.relabel(&changed)
	}
}
