package fakedocker

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// reply is an answer: JSON, or the output of a process.
type reply struct {
	status         int
	body           any
	stdout, stderr string
	feed           func(in io.Reader) (stdout, stderr string, answers bool) // runs a process with its input; may be nil
	finish         func()                                                   // ends the process if nothing was fed
}

func (a reply) write(w http.ResponseWriter, _ *http.Request) {
	if a.status == http.StatusSwitchingProtocols {
		a.stream(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	if a.body != nil {
		_ = json.NewEncoder(w).Encode(a.body) // the client may have disconnected
	}
}

func (a reply) stream(w http.ResponseWriter) {
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	if a.feed != nil {
		answers := false
		if a.stdout, a.stderr, answers = a.feed(io.MultiReader(buffered, c)); !answers {
			return
		}
	}
	for i, text := range []string{a.stdout, a.stderr} {
		head := []byte{byte(i + 1), 0, 0, 0, 0, 0, 0, 0}
		binary.BigEndian.PutUint32(head[4:], uint32(len(text))) // #nosec G115 -- a test's text
		_, _ = c.Write(append(head, text...))
	}
}

func refusal(status int, format string, args ...any) reply {
	return reply{status: status, body: map[string]any{"message": fmt.Sprintf(format, args...)}}
}
