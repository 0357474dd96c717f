package widget_test

import (
	"io"
	"net/http"
	"strings"
)

// upload stores no file. The name of the file says what happens: refused, busy at first, or slow until it is released.
func (s *chatServer) upload(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer good" {
		refuse(w, 401, "unauthenticated", "no")
		return
	}
	f, head, err := r.FormFile("file")
	if err != nil {
		s.problem("the upload: %v", err)
		return
	}
	size, err := io.Copy(io.Discard, f)
	if err != nil {
		s.problem("the upload: %v", err)
	}
	name := head.Filename
	s.Lock()
	again := s.failed[name]
	s.failed[name] = true
	s.Unlock()
	switch {
	case strings.HasPrefix(name, "refused"):
		refuse(w, 400, "invalid", "a ZIP archive or an Office document; PDF and text are accepted")
		return
	case strings.HasPrefix(name, "busy") && !again:
		refuse(w, 503, "overloaded", "the server has as many files as it can hold at once")
		return
	case strings.HasPrefix(name, "slow"):
		select {
		case <-s.release:
		case <-r.Context().Done():
			return
		}
	}
	reply(w, 200, object{"ok": true, "fileId": "id-of-" + name, "name": name, "type": "text/plain", "size": size})
}
