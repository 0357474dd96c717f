package fakegoogle

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
)

func (s *Server) getMessage(r request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.allOf(r.email) {
		if m.ID == r.PathValue("id") {
			return s.show(r, m)
		}
	}
	return nil, notFound()
}

// getAttachment answers with the content of a part that the message's own answer leaves out. The ID of an attachment is
// valid only for its message.
func (s *Server) getAttachment(r request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.allOf(r.email) {
		if m.ID != r.PathValue("id") {
			continue
		}
		if data, ok := m.attachment(r.PathValue("attachment")); ok {
			return map[string]any{"size": len(data), "data": base64.URLEncoding.EncodeToString(data)}, nil
		}
	}
	return nil, notFound()
}

func (s *Server) getThread(r request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []any{}
	for _, m := range s.allOf(r.email) {
		if m.Thread != r.PathValue("id") {
			continue
		}
		shown, e := s.show(r, m)
		if e != nil {
			return nil, e
		}
		list = append(list, shown)
	}
	if len(list) == 0 {
		return nil, notFound()
	}
	return map[string]any{"id": r.PathValue("id"), "messages": list, "historyId": s.id("")}, nil
}

// show answers with a message, without its bodies if the scope is only for metadata.
func (s *Server) show(r request, m *message) (any, *apiError) {
	format := cmp.Or(r.FormValue("format"), "full")
	if (format == "full" || format == "raw") && !r.can(scopeAll) && !r.can(scopeModify) && !r.can(scopeReadonly) {
		return nil, forbidden("Metadata scope doesn't allow format " + strings.ToUpper(format))
	}
	return m.answer(format, r.Form["metadataHeaders"])
}

// allOf returns a user's drafts and their sent and received messages, oldest first.
func (s *Server) allOf(email string) []*message {
	list := s.sentBy(email)
	for _, m := range s.state.received {
		if m.User == email {
			list = append(list, m)
		}
	}
	for id := range s.state.drafts {
		if d := s.draftOf(email, id); d != nil {
			list = append(list, &d.Message)
		}
	}
	slices.SortFunc(list, func(a, b *message) int { return strings.Compare(a.ID, b.ID) })
	return list
}

func (s *Server) sentBy(email string) (list []*message) {
	for _, m := range s.state.messages {
		if m.User == email {
			list = append(list, m)
		}
	}
	return list
}

func (s *Server) draftOf(email, id string) *draft {
	if d := s.state.drafts[id]; d != nil && d.Message.User == email {
		return d
	}
	return nil
}
