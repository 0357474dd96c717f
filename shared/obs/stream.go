package obs

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"unicode"

	"github.com/countersign-run/countersign/shared/lazyregexp"
)

// RemoveSecrets returns the text without tokens, keys and passwords, as [Redact] knows them, and otherwise as it is: of
// what a command prints, whose @ mostly stands in no address of a person's.
func RemoveSecrets(s string) string { return without(s, secrets[:len(secrets)-1]) } // the last is of addresses

// maxLine is how much of a line is held back, in bytes: a longer one is cut at its last white space. Of one that has
// none lookBack bytes are looked at again with what follows, as a secret may begin with them.
const (
	maxLine  = 16 << 10
	lookBack = 64
)

const lineEnds = "\n\r"

// A SecretFilter passes what is written to it on without secrets ([RemoveSecrets]), line by line, so that a secret that
// comes in several pieces is known as one that comes whole. A line ends with \n or \r; of one that has not ended
// [SecretFilter.Flush] passes on what may be. All of the line is looked at each time: what a word is, those before it
// tell. It may be used by several goroutines.
type SecretFilter struct {
	to io.Writer

	mu     sync.Mutex
	line   []byte // the unfinished line, as it came
	passed string // what of it was passed on
	fresh  bool   // something of it has come since the last Flush
	inPEM  bool   // a block has begun and not ended; nothing of it is passed on
	drop   int    // how much may still come of a secret that was cut; it ends with white space
}

// NewSecretFilter returns a filter in front of a writer.
func NewSecretFilter(to io.Writer) *SecretFilter { return &SecretFilter{to: to} }

// Write implements [io.Writer]. Its error is that of the writer behind it.
func (f *SecretFilter) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(b)
	for b = f.dropped(b); len(b) > 0; b = f.dropped(b) {
		end := bytes.IndexAny(b, lineEnds) + 1
		if end == 0 {
			end = len(b)
		}
		take := min(end, maxLine)
		f.line, f.fresh = append(f.line, b[:take]...), true
		b = b[take:]
		if err := f.pass(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// dropped returns what comes behind a secret that was cut.
func (f *SecretFilter) dropped(b []byte) []byte {
	n := min(f.drop, len(b))
	f.drop -= n
	if i := bytes.IndexAny(b[:n], " \t\n\f\r"); i >= 0 {
		f.drop, n = 0, i
	}
	return b[n:]
}

// Flush is called now and then, for what is held back of an unfinished line: it passes on all but the last word, in
// which a secret may have begun, and that too when nothing has come since the last call, as of a question.
func (f *SecretFilter) Flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.line)
	if f.fresh {
		n = bytes.LastIndexFunc(f.line, unicode.IsSpace) + 1
	}
	f.fresh = false
	return f.send(n, false)
}

// Close passes on all that is held back. It is called when nothing more will come.
func (f *SecretFilter) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.send(len(f.line), false)
}

// pass passes on a finished line, and the beginning of one that is too long to be held back.
func (f *SecretFilter) pass() error {
	end := len(f.line)
	if !strings.ContainsRune(lineEnds, rune(f.line[end-1])) {
		if end < maxLine {
			return nil
		}
		if end = bytes.LastIndexFunc(f.line, unicode.IsSpace) + 1; end == 0 {
			return f.cut()
		}
	}
	err := f.send(end, true)
	f.line, f.passed = append(f.line[:0], f.line[end:]...), ""
	return err
}

// cut passes on the beginning of a word that is too long to be held back.
func (f *SecretFilter) cut() error {
	err := f.send(len(f.line), true)
	tail := f.line[len(f.line)-lookBack:]
	if strings.HasSuffix(f.passed, redacted) {
		f.drop = maxLine
	}
	if f.inPEM || f.drop > 0 {
		tail = nil
	}
	f.line = append(f.line[:0], tail...)
	f.passed = RemoveSecrets(string(f.line))
	return err
}

// send passes on the first n bytes of the line, without what was passed on before. over says that no more of the line
// is looked at with them.
func (f *SecretFilter) send(n int, over bool) error {
	clean := f.clean(string(f.line[:n]), over)
	common := 0
	for common < min(len(clean), len(f.passed)) && clean[common] == f.passed[common] {
		common++
	}
	more := clean[common:]
	if more == "" {
		return nil
	}
	f.passed = clean
	_, err := io.WriteString(f.to, more)
	return err
}

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
)

// pemBody is a line between the first and the last of a block: base64, a header or nothing; quoted, indented or
// numbered.
var pemBody = lazyregexp.New(`^[\s"'>|#+-]*([0-9]+[:\s]\s*)?([A-Za-z0-9+/=]*|[A-Za-z0-9-]+: .*)[\s"',\\]*$`)

// clean returns the beginning of the line without secrets. A block of PEM goes over many lines, of which the first and
// the last are as secret as those between: what was in front of it stays.
func (f *SecretFilter) clean(s string, over bool) string {
	if f.inPEM {
		i := strings.Index(s, pemEnd)
		if i < 0 && over && !pemBody.MatchString(s) { // only the first line was printed, as by grep
			f.inPEM = false
			return RemoveSecrets(s)
		}
		if i < 0 {
			return ""
		}
		rest := s[i+len(pemEnd):]
		_, after, closed := strings.Cut(rest, "-----")
		if !closed {
			return ""
		}
		f.inPEM = !over
		return RemoveSecrets(after)
	}
	if i := strings.LastIndex(s, pemBegin); i >= 0 && !strings.Contains(s[i:], pemEnd) {
		f.inPEM = over
		return RemoveSecrets(s[:i]) + redacted + "\n"
	}
	return RemoveSecrets(s)
}
