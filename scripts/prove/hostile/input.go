package hostile

// take takes a part of the input, and expands it. If a part was not taken in the end, the input has a form that the
// runner does not know.
func (s *env) take(key string) (v any, ok bool) {
	if v, ok = s.left[key]; !ok {
		return nil, false
	}
	delete(s.left, key)
	v, err := s.say.value(v)
	s.must(err)
	return v, true
}

func (s *env) has(key string) bool {
	_, ok := s.left[key]
	return ok
}

// takeText takes a part of the input that is a text, or "" if it is absent.
func (s *env) takeText(key string) string {
	v, ok := s.take(key)
	if _, text := v.(string); ok && !text {
		s.unknown("%s that is %T", key, v)
	}
	return textOf(v)
}

// number reads a count of the case.
func (s *env) number(v any) int {
	n, err := number(v)
	s.must(err)
	return n
}

// unknown ends the case because its input has an unknown form.
func (s *env) unknown(format string, args ...any) { s.must(unknown(format, args...)) }

// keep records the private texts of a request or a call: the users' words and their recipients.
func (s *env) keep(args any) {
	for _, text := range texts(args, "prompt", "to", "cc", "bcc", "subject", "body", "summary", "description",
		"location", "attendees", "comment") {
		if len(text) >= 12 { // a short word can occur anywhere
			s.private[text] = true
		}
	}
}
