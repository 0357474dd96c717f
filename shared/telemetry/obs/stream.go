package obs

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"unicode"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// RemoveSecrets returns the text without tokens, keys and passwords, which it finds as [Redact] does, and changes
// nothing else. It is for the output of commands, in which an @ is rarely part of a person's address.
func RemoveSecrets(s string) string { return without(s, secrets[:len(secrets)-1]) } // the last one is for addresses

// Redacted reports whether [RemoveSecrets] removed something from the text.
func Redacted(s string) bool { return strings.Contains(s, redacted) }

// maxLine is the maximum length of a line that is held back, in bytes. A longer line is cut at its last white space. If
// it has none, its last lookBack bytes are examined again with what follows, because a secret may begin in them.
const (
	maxLine  = 16 << 10
	lookBack = 64
)

const lineEnds = "\n\r"

// A SecretFilter passes its input on without secrets ([RemoveSecrets]), line by line, so that it recognises
// a secret that arrives in several pieces. A line ends with \n or \r. [SecretFilter.Flush] passes on the safe part of
// an unfinished line. The filter always examines the whole line, because earlier words determine the meaning of a word.
// It is safe for concurrent use.
type SecretFilter struct {
	to io.Writer

	mu     sync.Mutex
	line   []byte // the unfinished line, as received
	passed string // the part of the result that was passed on
	fresh  bool   // some of it has arrived since the last Flush
	inPEM  bool   // inside a PEM block, which is dropped
	drop   int    // maximum remaining length of a secret that was cut; it ends at white space
}

// NewSecretFilter returns a filter that writes to to.
func NewSecretFilter(to io.Writer) *SecretFilter { return &SecretFilter{to: to} }

// Write implements [io.Writer]. It returns the error of the underlying writer.
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

// dropped returns the part of b after a secret that was cut.
func (f *SecretFilter) dropped(b []byte) []byte {
	n := min(f.drop, len(b))
	f.drop -= n
	if i := bytes.IndexAny(b[:n], " \t\n\f\r"); i >= 0 {
		f.drop, n = 0, i
	}
	return b[n:]
}

// Flush passes on an unfinished line except its last word, in which a secret may have started. If nothing has arrived
// since the last call, as after a question, it passes on the last word too. Call it from time to time. It returns the
// error of the underlying writer.
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

// Close passes on everything that is held back. Call it when nothing more will be written. It returns the error of the
// underlying writer.
func (f *SecretFilter) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.send(len(f.line), false)
}

// pass passes on a finished line, and the beginning of a line that is too long to hold back.
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

// cut passes on the beginning of a word that is too long to hold back.
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

// send passes on the first n bytes of the line, without the part that was passed on before. over means that these bytes
// are examined without the rest of the line.
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

// pemBody matches a line inside a PEM block: base64, a header or nothing; possibly quoted, indented or numbered.
var pemBody = lazyregexp.New(`^[\s"'>|#+-]*([0-9]+[:\s]\s*)?([A-Za-z0-9+/=]*|[A-Za-z0-9-]+: .*)[\s"',\\]*$`)

// clean returns the beginning of the line without secrets. A PEM block covers many lines. Its first and last line are
// as secret as those between them, but text before the block stays.
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
