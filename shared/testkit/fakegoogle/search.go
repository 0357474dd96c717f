package fakegoogle

import (
	"bytes"
	"html"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	gomessage "github.com/emersion/go-message"
)

// listMessages supports labels, pages, and the searches that [readTerms] parses. The newest message comes first.
func (s *Server) listMessages(r request) (any, *apiError) {
	q := r.FormValue("q")
	if q != "" && !r.can(scopeAll) && !r.can(scopeModify) && !r.can(scopeReadonly) {
		return nil, forbidden("Metadata scope does not support 'q' parameter")
	}
	terms, ok := s.readTerms(q, r.email)
	if !ok {
		return nil, badRequest("This search is not served locally.")
	}
	p, e := readPage(r, 100, 500)
	if e != nil {
		return nil, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := slices.DeleteFunc(s.allOf(r.email), func(m *message) bool {
		return slices.ContainsFunc(r.Form["labelIds"], func(l string) bool { return !m.has(l) }) ||
			slices.ContainsFunc(terms, func(t term) bool { return !t(m) })
	})
	slices.Reverse(found)
	shown, next := cut(found, p)
	answer := map[string]any{"resultSizeEstimate": len(found)}
	list := []any{}
	for _, m := range shown {
		list = append(list, map[string]any{"id": m.ID, "threadId": m.Thread})
	}
	if len(list) > 0 { // Gmail does the same
		answer["messages"] = list
	}
	if next != "" {
		answer["nextPageToken"] = next
	}
	return answer, nil
}

// term is one condition of a search.
type term func(m *message) bool

var (
	termForm = lazyregexp.New(`(-?)(?:([a-z0-9_]+):)?("[^"]*"|\S+)`)
	ageForm  = lazyregexp.New(`^(\d{1,4})([dmy])$`)
)

// readTerms parses a search: words and quotations, from:, to:, cc:, subject:, in:, after:, before:, newer_than:,
// older_than: and rfc822msgid:, and their negations. All terms must match. It reports false for any other search.
func (s *Server) readTerms(q, email string) (terms []term, ok bool) {
	for _, m := range termForm.FindAllStringSubmatch(q, -1) {
		t := s.readTerm(m[2], strings.Trim(m[3], `"`), email)
		if t == nil || m[2] == "" && m[3] == "OR" || strings.ContainsAny(m[3][:1], "{}()") {
			return nil, false
		}
		if m[1] != "" {
			holds := t
			t = func(m *message) bool { return !holds(m) }
		}
		terms = append(terms, t)
	}
	return terms, true
}

func (s *Server) readTerm(operator, value, email string) term {
	words := strings.ToLower(value)
	if words == "me" && (operator == "from" || operator == "to" || operator == "cc") {
		words = email
	}
	has := func(headers ...string) term {
		return func(m *message) bool {
			return slices.ContainsFunc(headers, func(h string) bool {
				return strings.Contains(strings.ToLower(m.header(h)), words)
			})
		}
	}
	switch operator {
	case "":
		return func(m *message) bool {
			return has("From", "To", "Cc", "Subject")(m) || strings.Contains(strings.ToLower(m.text()), words)
		}
	case "from", "cc", "subject":
		return has(operator)
	case "to":
		return has("To", "Cc", "Bcc")
	case "rfc822msgid":
		return func(m *message) bool { return strings.Trim(m.header("Message-Id"), "<>") == strings.Trim(value, "<>") }
	case "in":
		label, known := map[string]string{"sent": "SENT", "inbox": "INBOX", "drafts": "DRAFT", "anywhere": ""}[words]
		if !known {
			return nil
		}
		return func(m *message) bool { return label == "" || m.has(label) }
	}
	at, ok := s.readDay(operator, value)
	switch {
	case !ok:
		return nil
	case operator == "after" || operator == "newer_than":
		return func(m *message) bool { return !m.At.Before(at) }
	}
	return func(m *message) bool { return m.At.Before(at) }
}

// readDay returns the time that a time operator names.
func (s *Server) readDay(operator, value string) (at time.Time, ok bool) {
	switch operator {
	case "after", "before":
		for _, layout := range []string{"2006/1/2", time.DateOnly} {
			if at, err := time.Parse(layout, value); err == nil {
				return at, true
			}
		}
	case "newer_than", "older_than":
		if m := ageForm.FindStringSubmatch(value); m != nil {
			n, _ := strconv.Atoi(m[1]) // Unix seconds
			days := map[string]int{"d": 1, "m": 30, "y": 365}[m[2]]
			return s.opts.Now().AddDate(0, 0, -n*days), true
		}
	}
	return at, false
}

// header returns a header's decoded text.
func (m *message) header(name string) string {
	e, err := gomessage.Read(bytes.NewReader(m.Raw))
	if err != nil {
		return ""
	}
	text, err := e.Header.Text(name)
	if err != nil {
		return e.Header.Get(name)
	}
	return text
}

var htmlTag = lazyregexp.New(`<[^>]*>`)

// maxSnippet is the length of a snippet, in characters.
const maxSnippet = 200

// text returns the text of the message.
func (m *message) text() string {
	p := m.public()
	if p.Text == "" {
		return html.UnescapeString(htmlTag.ReplaceAllString(p.HTML, " "))
	}
	return p.Text
}

// snippet returns the beginning of the message's text, with HTML's special characters escaped, as Gmail does.
func (m *message) snippet() string {
	words := []rune(strings.Join(strings.Fields(m.text()), " "))
	return html.EscapeString(string(words[:min(len(words), maxSnippet)]))
}
