package fakegoogle

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"time"

	gomessage "github.com/emersion/go-message"
	gomail "github.com/emersion/go-message/mail"
	"github.com/emersion/go-message/textproto"
)

// stamp sets the headers that Gmail sets: the sender, the date, and a Message-ID in place of the client's.
func stamp(raw []byte, from, messageID string, now time.Time) ([]byte, error) {
	in := bufio.NewReader(bytes.NewReader(raw))
	h, err := textproto.ReadHeader(in)
	if err != nil {
		return nil, err
	}
	for _, k := range []string{"From", "Sender", "Date", "Message-Id"} {
		h.Del(k)
	}
	h.Set("From", from)
	h.Set("Message-ID", messageID)
	h.Set("Date", now.UTC().Format(time.RFC1123Z))
	var out bytes.Buffer
	if err := textproto.WriteHeader(&out, h); err != nil {
		return nil, err
	}
	_, err = io.Copy(&out, in)
	return out.Bytes(), err
}

// withoutBcc returns the message without the header that only its sender may read.
func withoutBcc(raw []byte) []byte {
	in := bufio.NewReader(bytes.NewReader(raw))
	h, err := textproto.ReadHeader(in)
	if err != nil {
		return raw
	}
	h.Del("Bcc")
	var out bytes.Buffer
	if textproto.WriteHeader(&out, h) != nil {
		return raw
	}
	_, _ = io.Copy(&out, in) // neither the reader nor the writer fails
	return out.Bytes()
}

// deliverable refuses messages that Gmail refuses to send: those without a recipient, or with an invalid one.
func deliverable(raw []byte) *apiError {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return badRequest("The message is not valid by RFC 822.")
	}
	found := 0
	for _, name := range []string{"To", "Cc", "Bcc"} {
		list, err := addresses(m.Header, name)
		if err != nil {
			return badRequest("Invalid " + name + " header")
		}
		found += len(list)
	}
	if found == 0 {
		return badRequest("Recipient address required")
	}
	return nil
}

func addresses(h mail.Header, name string) (out []string, err error) {
	if h.Get(name) == "" {
		return nil, nil
	}
	list, err := h.AddressList(name)
	for _, a := range list {
		out = append(out, a.Address)
	}
	return out, err
}

func (m *message) reference() map[string]any {
	return map[string]any{"id": m.ID, "threadId": m.Thread, "labelIds": m.labels()}
}

func (d *draft) answer(format string, only []string) (any, *apiError) {
	m, e := d.Message.answer(format, only)
	if e != nil {
		return nil, e
	}
	return map[string]any{"id": d.ID, "message": m}, nil
}

// answer returns the message in one of Gmail's formats. only lists the headers for the format metadata.
func (m *message) answer(format string, only []string) (any, *apiError) {
	a := m.reference()
	a["snippet"] = m.snippet()
	a["internalDate"] = strconv.FormatInt(m.At.UnixMilli(), 10)
	a["sizeEstimate"] = len(m.Raw)
	a["historyId"] = strconv.FormatInt(m.At.Unix(), 10)
	switch format {
	case "minimal":
	case "raw":
		a["raw"] = base64.URLEncoding.EncodeToString(m.Raw)
	case "metadata", "full":
		in := bufio.NewReader(bytes.NewReader(m.Raw))
		h, err := textproto.ReadHeader(in)
		if err != nil {
			return nil, badRequest("The message cannot be read.")
		}
		p := payload(h, in, "", format == "full", nil)
		if format == "metadata" && len(only) > 0 {
			p["headers"] = slices.DeleteFunc(p["headers"].([]map[string]string), func(h map[string]string) bool {
				return !slices.ContainsFunc(only, func(n string) bool { return strings.EqualFold(n, h["name"]) })
			})
		}
		a["payload"] = p
	default:
		return nil, badRequest("Invalid value for format")
	}
	return a, nil
}

// payload returns a part of the formats metadata and full, with the parts inside it. The data of a text are its bytes
// in its own character set. The content of a file is left out, because clients request it by its attachmentId. files,
// if not nil, receives it.
func payload(th textproto.Header, body io.Reader, id string, bodies bool, files map[string][]byte) map[string]any {
	h := gomessage.Header{Header: th}
	kind, params, _ := h.ContentType()
	headers := []map[string]string{}
	for f := h.Fields(); f.Next(); {
		headers = append(headers, map[string]string{"name": f.Key(), "value": f.Value()})
	}
	name, _ := (&gomail.AttachmentHeader{Header: h}).Filename() // a name that cannot be decoded stays as it is
	p := map[string]any{"partId": id, "mimeType": kind, "headers": headers, "filename": name}
	if !bodies {
		return p
	}
	if strings.HasPrefix(kind, "multipart/") {
		p["parts"], p["body"] = children(body, params["boundary"], id, files), map[string]any{"size": 0}
		return p
	}
	var coding gomessage.Header
	coding.Set("Content-Transfer-Encoding", strings.TrimSpace(h.Get("Content-Transfer-Encoding")))
	content := body
	if e, err := gomessage.New(coding, body); err == nil {
		content = e.Body
	}
	b, _ := io.ReadAll(content) // as far as it can be decoded
	shown := map[string]any{"size": len(b)}
	if name != "" {
		shown["attachmentId"] = "att-" + id
		if files != nil {
			files["att-"+id] = b
		}
	} else {
		shown["data"] = base64.URLEncoding.EncodeToString(b)
	}
	p["body"] = shown
	if in := bufio.NewReader(bytes.NewReader(b)); kind == "message/rfc822" {
		if inner, err := textproto.ReadHeader(in); err == nil {
			p["parts"] = []any{payload(inner, in, below(id, 0), true, files)}
		}
	}
	return p
}

func children(body io.Reader, boundary, id string, files map[string][]byte) (list []any) {
	parts := textproto.NewMultipartReader(body, boundary)
	for i := 0; ; i++ {
		child, err := parts.NextPart()
		if err != nil {
			return list
		}
		list = append(list, payload(child.Header, child, below(id, i), true, files))
	}
}

// attachment returns the content of the file with the attachmentId.
func (m *message) attachment(id string) ([]byte, bool) {
	in, files := bufio.NewReader(bytes.NewReader(m.Raw)), map[string][]byte{}
	if h, err := textproto.ReadHeader(in); err == nil {
		payload(h, in, "", true, files)
	}
	data, ok := files[id]
	return data, ok
}

// below returns the ID of the part with this index in a part: 0, 1 and 0.1 as Gmail counts.
func below(id string, i int) string { return strings.TrimPrefix(id+"."+strconv.Itoa(i), ".") }

// Message is a sent message in the answer of GET /dev/mailbox.
type Message struct {
	ID      string    `json:"id"`
	User    string    `json:"user"` // the e-mail address of the account that sent it
	From    string    `json:"from"`
	To      []string  `json:"to"`
	Cc      []string  `json:"cc"`
	Bcc     []string  `json:"bcc"`
	Subject string    `json:"subject"`
	Text    string    `json:"text"`
	HTML    string    `json:"html,omitempty"`
	Files   []File    `json:"attachments,omitempty"`
	Raw     string    `json:"raw"`
	SentAt  time.Time `json:"sentAt"`
}

// File is an attachment of a sent message.
type File struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"`
	Data   []byte `json:"-"`
}

// Messages returns the sent messages of all users, oldest first.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Message{}
	for _, m := range s.state.messages {
		out = append(out, m.public())
	}
	return out
}

// public decodes a message that deliverable has accepted. A field that cannot be decoded is empty; Raw has the
// complete message.
func (m *message) public() Message {
	p := Message{ID: m.ID, User: m.User, From: m.User, To: []string{}, Cc: []string{}, Bcc: []string{},
		Raw: string(m.Raw), SentAt: m.At}
	if parsed, err := mail.ReadMessage(bytes.NewReader(m.Raw)); err == nil {
		for name, into := range map[string]*[]string{"To": &p.To, "Cc": &p.Cc, "Bcc": &p.Bcc} {
			if list, err := addresses(parsed.Header, name); err == nil && list != nil {
				*into = list
			}
		}
		p.Subject, _ = new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
	}
	e, err := gomessage.Read(bytes.NewReader(m.Raw))
	if err != nil {
		return p
	}
	_ = e.Walk(func(_ []int, leaf *gomessage.Entity, err error) error {
		if err != nil || leaf.MultipartReader() != nil {
			return err
		}
		kind, _, _ := leaf.Header.ContentType()
		b, err := io.ReadAll(leaf.Body)
		if how, _, bad := leaf.Header.ContentDisposition(); bad == nil && how == "attachment" {
			name, _ := (&gomail.AttachmentHeader{Header: leaf.Header}).Filename()
			p.Files = append(p.Files, File{name, kind, len(b), fmt.Sprintf("%x", sha256.Sum256(b)), b})
			return err
		}
		body := strings.ReplaceAll(string(b), "\r\n", "\n")
		if kind == "text/html" {
			p.HTML = body
		} else if p.Text == "" {
			p.Text = body
		}
		return err
	})
	return p
}
