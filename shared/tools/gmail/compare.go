package gmail

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/mail"
	"slices"
	"strings"

	"github.com/emersion/go-message"
	// Gmail may store a text in another character set than the one in which it was sent.
	_ "github.com/emersion/go-message/charset"
)

// meaning is the content of a message and its recipients, without what a mail server adds itself. Gmail stores a
// message with headers of its own, in another order, refolded and re-encoded, so its bytes are not the approved ones.
type meaning struct {
	Headers map[string][]string // by lower-case name: addresses, decoded text, or the raw value
	Parts   []node              // the tree of parts from the top
}

// node is a part: a text, or a container of other parts.
type node struct {
	Path string // where it is in the tree
	Kind string
	Body string // of a text: lines end with a line feed, trailing blanks are removed
	More string // the rest of its headers: a file name, a disposition
}

// The headers that mail servers write: RFC 5321 §4.4 (Received), RFC 5322 §3.6 (Date, Message-ID), RFC 2045 §4
// (MIME-Version), and Google's own.
var (
	stamps       = []string{"received", "date", "message-id", "mime-version"}
	ownedByThem  = []string{"x-gm-", "x-google-"}
	addressLists = []string{"from", "sender", "reply-to", "to", "cc", "bcc"}
)

// same reports whether a stored message has the approved content: equal bytes, or equal meaning. A missing action
// header is no difference; another one is, and so is everything that was added except a server's own headers.
func same(approved, stored []byte) bool {
	if bytes.Equal(approved, stored) {
		return true
	}
	a, errA := read(approved)
	s, errS := read(stored)
	if errA != nil || errS != nil {
		return false
	}
	if _, kept := s.Headers[actionKey]; !kept {
		delete(a.Headers, actionKey)
	}
	return maps.EqualFunc(a.Headers, s.Headers, slices.Equal) && slices.Equal(a.Parts, s.Parts)
}

// sameFrom is like same, for a message of the account. If the account's address is unknown, the approved message names
// no sender, and the From that Gmail adds is not a difference.
func sameFrom(account string, approved, stored []byte) bool {
	if account != "" {
		return same(approved, stored)
	}
	if a, err := read(approved); err != nil || len(a.Headers["from"]) > 0 {
		return same(approved, stored)
	}
	m, err := read(stored)
	if err != nil || len(m.Headers["from"]) != 1 {
		return same(approved, stored)
	}
	return same(slices.Concat([]byte("From: "+m.Headers["from"][0]+"\r\n"), approved), stored)
}

var actionKey = strings.ToLower(actionHeader)

func read(raw []byte) (m meaning, err error) {
	e, err := message.Read(bytes.NewReader(raw))
	if err != nil {
		return m, err
	}
	m.Headers = map[string][]string{}
	for f := e.Header.Fields(); f.Next(); {
		key := strings.ToLower(f.Key())
		if slices.Contains(stamps, key) || strings.HasPrefix(key, "content-") ||
			slices.ContainsFunc(ownedByThem, func(p string) bool { return strings.HasPrefix(key, p) }) {
			continue
		}
		said, err := headerSays(key, f.Value())
		if err != nil {
			return m, err
		}
		if said != nil {
			m.Headers[key] = append(m.Headers[key], said...)
		}
	}
	err = e.Walk(func(path []int, part *message.Entity, err error) error {
		if err != nil {
			return err
		}
		n, err := readPart(path, part)
		m.Parts = append(m.Parts, n)
		return err
	})
	return m, err
}

// headerSays returns the content of one field, or "" for an empty list of addresses.
func headerSays(key, value string) ([]string, error) {
	switch {
	case slices.Contains(addressLists, key):
		return addresses(value)
	case key == "subject":
		text, err := new(mime.WordDecoder).DecodeHeader(value)
		return []string{text}, err
	}
	return []string{strings.Join(strings.Fields(value), " ")}, nil
}

// addresses returns the addresses of a field, with the domains in lower case and without names.
func addresses(value string) (out []string, err error) {
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	list, err := mail.ParseAddressList(value)
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		local, domain, _ := strings.Cut(a.Address, "@")
		out = append(out, local+"@"+strings.ToLower(domain))
	}
	return out, nil
}

// readPart reads a part. Its character set, transfer encoding and boundary are its encoding and not its content.
func readPart(path []int, e *message.Entity) (node, error) {
	kind, params, err := e.Header.ContentType()
	if err != nil {
		return node{}, err
	}
	n := node{Path: fmt.Sprint(path), Kind: kind, More: more(e, len(path) > 0)}
	delete(params, "charset")
	if e.MultipartReader() != nil {
		delete(params, "boundary")
	}
	if len(params) > 0 {
		n.More += fmt.Sprint(params)
	}
	if e.MultipartReader() != nil {
		return n, nil
	}
	b, err := io.ReadAll(e.Body)
	if isFile(e) { // each byte counts
		n.Body = digest(b)
		return n, err
	}
	n.Body = strings.TrimRight(strings.ReplaceAll(string(b), "\r\n", "\n"), " \t\n")
	return n, err
}

// isFile reports whether a part is a file for its readers.
func isFile(e *message.Entity) bool {
	kind, _, err := e.Header.ContentDisposition()
	return err == nil && strings.EqualFold(kind, "attachment")
}

// more returns a part's headers except its type and encoding; of the message itself, only those about its content.
func more(e *message.Entity, inner bool) string {
	var b strings.Builder
	seen := map[string]bool{}
	for f := e.Header.Fields(); f.Next(); {
		key := strings.ToLower(f.Key())
		plain := key == "content-type" || key == "content-transfer-encoding"
		if !inner && !strings.HasPrefix(key, "content-") || plain && !seen[key] {
			seen[key] = true
			continue
		}
		value := f.Value()
		if kind, params, err := mime.ParseMediaType(value); key == "content-disposition" && err == nil {
			value = fmt.Sprint(kind, params) // its encoding may change
		}
		fmt.Fprintf(&b, "%s: %s\n", key, value)
	}
	return b.String()
}
