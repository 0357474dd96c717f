package fakegoogle

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
