package fakegoogle

import (
	"bufio"
	"bytes"
	"net/mail"
	"slices"
	"strings"

	"github.com/emersion/go-message/textproto"
)

// SendAs is another address from which an account can send.
type SendAs struct {
	Address string
	Pending bool // its owner has not confirmed it yet
}

// SetSendAs replaces an account's other addresses.
func (s *Server) SetSendAs(email string, all ...SendAs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendAs[email] = all
}

// listSendAs lists the account's own address first. Gmail verifies only the others.
func (s *Server) listSendAs(r request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []any{map[string]any{"sendAsEmail": r.email, "displayName": "", "isPrimary": true, "isDefault": true}}
	for _, a := range s.sendAs[r.email] {
		status := "accepted"
		if a.Pending {
			status = "pending"
		}
		list = append(list, map[string]any{"sendAsEmail": a.Address, "displayName": "", "replyToAddress": "",
			"treatAsAlias": true, "verificationStatus": status})
	}
	return map[string]any{"sendAs": list}, nil
}

// sender returns the message's From if the account can send from there, and else the account's address.
func (s *Server) sender(email string, raw []byte) string {
	h, err := textproto.ReadHeader(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		return email
	}
	from, err := mail.ParseAddress(h.Get("From"))
	if err == nil && slices.ContainsFunc(s.sendAs[email], func(a SendAs) bool {
		return !a.Pending && strings.EqualFold(a.Address, from.Address)
	}) {
		return from.Address
	}
	return email
}
