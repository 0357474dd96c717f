package fakegoogle

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
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

// show answers with a message, without bodies if the scope is for metadata only.
func (s *Server) show(r request, m *message) (any, *apiError) {
	format := cmp.Or(r.FormValue("format"), "full")
	if (format == "full" || format == "raw") && !r.can(scopeAll) && !r.can(scopeModify) && !r.can(scopeReadonly) {
		return nil, forbidden("Metadata scope doesn't allow format " + strings.ToUpper(format))
	}
	return m.answer(format, r.Form["metadataHeaders"])
}

// listMessages serves the label SENT and the searches "in:sent" and "rfc822msgid:"; newest first.
func (s *Server) listMessages(r request) (any, *apiError) {
	q := strings.Fields(r.FormValue("q"))
	if len(q) > 0 && !r.can(scopeAll) && !r.can(scopeModify) && !r.can(scopeReadonly) {
		return nil, forbidden("Metadata scope does not support 'q' parameter")
	}
	most, err := strconv.Atoi(cmp.Or(r.FormValue("maxResults"), "100"))
	if err != nil || most < 1 || most > 500 {
		return nil, badRequest("Invalid maxResults")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []any{}
	for _, m := range slices.Backward(s.allOf(r.email)) {
		hit, ok := m.matches(q, r.Form["labelIds"])
		if !ok {
			return nil, badRequest("This search is not served locally.")
		}
		if hit && len(list) < most {
			list = append(list, map[string]any{"id": m.ID, "threadId": m.Thread})
		}
	}
	return map[string]any{"messages": list, "resultSizeEstimate": len(list)}, nil
}

func (m *message) matches(q, labels []string) (hit, served bool) {
	for _, l := range labels {
		if l != m.Label {
			return false, true
		}
	}
	for _, term := range q {
		id, isID := strings.CutPrefix(term, "rfc822msgid:")
		switch {
		case term == "in:sent" && m.Label != "SENT", isID && strings.Trim(id, "<>") != m.ID+"@mail.gmail.com":
			return false, true
		case term != "in:sent" && !isID:
			return false, false
		}
	}
	return true, true
}

// allOf returns a user's drafts and sent messages.
func (s *Server) allOf(email string) []*message {
	list := s.sentBy(email)
	for _, id := range slices.Sorted(maps.Keys(s.state.drafts)) {
		if d := s.draftOf(email, id); d != nil {
			list = append(list, &d.Message)
		}
	}
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
