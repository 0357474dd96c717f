package hostile

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// stream runs a case of http:stream.
func stream(s *env) got {
	switch {
	case s.has("split_utf8"):
		return s.split()
	case s.has("client"):
		return s.lazy()
	}
	s.open(nil)
	turn := s.streamed()
	s.w.SetModel(func(fakegemini.Request) fakegemini.Turn { return turn })
	return s.streams(turn.Text)
}

// streams sends the case's request, or an ordinary one, and reads the stream of the response.
func (s *env) streams(text string) got {
	if !s.has("body") && !s.has("raw") {
		s.left["body"] = map[string]any{"prompt": "Please."}
	}
	a := s.send(s.compose(routes["stream"]))
	if a.HTTP != http.StatusOK {
		return gotOf(a)
	}
	return s.checkStream(a.Body, text)
}

// streamed returns the model's stream.
func (s *env) streamed() fakegemini.Turn {
	if s.has("model_text") {
		return fakegemini.Turn{Text: s.takeText("model_text"), Pieces: 3}
	}
	how := s.takeText("model")
	switch {
	case fails.MatchString(how) && !strings.Contains(how, "after"):
		return fakegemini.Turn{Status: 400}
	case fails.MatchString(how):
		return fakegemini.Turn{Text: "one two three four five six", Hangup: true}
	case silent.MatchString(how) || strings.Contains(how, "stall"):
		return fakegemini.Turn{Delay: time.Hour}
	case manyDeltas.MatchString(how):
		n, _ := strconv.Atoi(manyDeltas.FindStringSubmatch(how)[1]) // the expression matches digits
		return fakegemini.Turn{Text: strings.Repeat("word ", n), Pieces: n}
	case strings.HasPrefix(how, "blocked"), strings.HasPrefix(how, "blocks"):
		return fakegemini.Turn{Block: "PROHIBITED_CONTENT"}
	case how != "":
		s.unknown("a model that %s", how)
	}
	return fakegemini.Turn{Text: "Hello."}
}

var (
	fails      = regexp.MustCompile(`(?i)\b(fails?|breaks?|dies|errors?|disconnects?|cut off|hangs up)\b`)
	manyDeltas = regexp.MustCompile(`(\d+) (?:deltas|pieces|chunks|words)`)
)

// checkStream checks the form of a stream: one JSON object a line, one last line that ends it, and the complete text.
func (s *env) checkStream(body []byte, text string) got {
	g := got{status: 200, class: "none"}
	var deltas strings.Builder
	lines := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
	for i, l := range lines {
		var part struct {
			Type, Delta, ErrorCode, Error string
			Result                        *testkit.Answer
		}
		if err := json.Unmarshal([]byte(l), &part); err != nil || !strings.HasPrefix(l, "{") {
			s.stop("line %d is no JSON object: %.100q", i+1, l)
		}
		deltas.WriteString(part.Delta)
		ends := part.Type == "result" || part.Type == "error"
		if ends != (i == len(lines)-1) {
			s.stop("line %d of %d is %q", i+1, len(lines), part.Type)
		}
		if part.Type == "error" {
			g.class = part.ErrorCode
		}
		g.detail = fmt.Sprintf("%.200s", l)
	}
	if g.class == "none" && deltas.String() != text {
		s.wrong("the pieces say %.100q", deltas.String())
	}
	if !utf8.ValidString(deltas.String()) || strings.ContainsRune(deltas.String(), utf8.RuneError) {
		s.wrong("the pieces hold a broken character")
	}
	s.over(g)
	return g
}

// over compares the stored run with the stream.
func (s *env) over(g got) {
	var list struct{ Threads []struct{ ThreadID string } }
	if s.get(s.as, "/threads", &list); len(list.Threads) != 1 {
		s.stop("there are %d threads", len(list.Threads))
	}
	var page struct{ Messages []struct{ RunID string } }
	s.get(s.as, "/threads/"+list.Threads[0].ThreadID+"/messages", &page)
	end := s.run(s.as, testkit.Answer{RunID: page.Messages[0].RunID})
	if failed := end.Status == "failed"; failed != (g.class != "none") {
		s.wrong("the stream ends with %s, and the run is %s", g.class, end.Status)
	}
}

// split sends the model's bytes one at a time, so that every character is split.
func (s *env) split() got {
	if how := s.takeText("split_utf8"); how == "" {
		s.unknown("split_utf8: %q", how)
	}
	s.open(nil, "GOOGLE_GEMINI_BASE_URL={cloud}/split")
	s.w.Handle("/split/", http.StripPrefix("/split", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.w.Gemini.ServeHTTP(byteByByte{w, http.NewResponseController(w)}, r)
	})))
	const text = "Grüße 😀 aus Köln – 日本語"
	s.w.SetModel(testkit.Says(text))
	return s.streams(text)
}

// byteByByte sends each byte separately.
type byteByByte struct {
	http.ResponseWriter
	rc *http.ResponseController
}

// Write implements io.Writer.
func (b byteByByte) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := b.ResponseWriter.Write(p[i : i+1]); err != nil {
			return i, err
		}
		if err := b.rc.Flush(); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// Unwrap is for http.ResponseController.
func (b byteByByte) Unwrap() http.ResponseWriter { return b.ResponseWriter }

var (
	leaves = regexp.MustCompile(`(?i)disconnect|closes?|leaves|abort|goes away|gone|drops|resets`)
	slowly = regexp.MustCompile(
		`(?i)reads (?:1|one|a) byte|reads? (?:next to |almost )?nothing|never reads|does not read|slow`)
)

// lazy runs a case of a client that hardly reads, or that disconnects. Its run must end nevertheless. For a client that
// disconnects, the model answers only after that.
func (s *env) lazy() got {
	how := s.takeText("client")
	leaves := leaves.MatchString(how)
	if !leaves && !slowly.MatchString(how) {
		s.unknown("a client that %s", how)
	}
	// A client can block the model for the duration of one write.
	s.open(func(l *unit.Env) { l.Agents[run.Assistant].Limits.ModelTimeout = time.Minute })
	left := make(chan struct{})
	leave := sync.OnceFunc(func() { close(left) })
	defer leave()
	s.w.SetModel(func(fakegemini.Request) fakegemini.Turn {
		if leaves {
			<-left
			// The delay lets the server notice the disconnection.
			return fakegemini.Turn{Text: "Hello.", Pieces: 1, Delay: 100 * time.Millisecond}
		}
		// This is less than the limit of a response.
		return fakegemini.Turn{Text: strings.Repeat(strings.Repeat("x", 4<<10)+" ", 100), Pieces: 100}
	})
	addr, stop, err := s.narrow()
	s.must(err)
	defer stop()
	conn, err := net.Dial("tcp", addr)
	s.must(err)
	defer conn.Close()
	s.must(conn.(*net.TCPConn).SetReadBuffer(2 << 10))
	token, err := s.token(s.as)
	s.must(err)
	const body = `{"prompt":"Please."}`
	_, err = fmt.Fprintf(conn, "POST /api/agent/run/stream HTTP/1.1\r\nHost: countersign\r\nAuthorization: Bearer "+
		"%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", token, len(body), body)
	s.must(err)
	in := bufio.NewReaderSize(conn, 16)
	status, err := in.ReadString('\n')
	if s.must(err); !strings.Contains(status, " 200 ") {
		s.stop("it is answered %q", status)
	}
	if leaves {
		_, err := in.ReadByte()
		_ = conn.Close() // it may be closed already
		leave()
		s.must(err)
	}
	for end := time.Now().Add(25 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		if _, err := in.ReadByte(); !leaves {
			s.must(err)
		}
		if s.moving() == 0 {
			g := got{status: 200, class: "none", detail: "the run ended"}
			s.over(g)
			return g
		}
	}
	s.stop("the run does not end: %.2000s", s.w.Logs.String())
	return got{}
}

// narrow serves Countersign over connections with tiny buffers, so that unread data blocks the writer.
func (s *env) narrow() (addr string, stop func() error, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	web := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	web.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(2 << 10) // if this fails, the case proves less
		return ctx
	}
	go func() { _ = web.Serve(ln) }() // it returns when stop is called
	return ln.Addr().String(), web.Close, nil
}
