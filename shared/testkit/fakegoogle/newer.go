package fakegoogle

import (
	"maps"
	"slices"
)

// MessagesAfter returns the sent messages of all users except the n oldest, oldest first.
func (s *Server) MessagesAfter(n int) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Message{}
	for _, m := range s.state.messages[min(n, len(s.state.messages)):] {
		out = append(out, m.public())
	}
	return out
}

// Drafts returns the messages of a user's drafts, in the order of the drafts' IDs.
func (s *Server) Drafts(email string) (raw [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.state.drafts)) {
		if d := s.draftOf(email, id); d != nil {
			raw = append(raw, d.Message.Raw)
		}
	}
	return raw
}
