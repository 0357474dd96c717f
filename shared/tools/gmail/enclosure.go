package gmail

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"
	gmailapi "google.golang.org/api/gmail/v1"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/tools/gmail/mailtext"
)

// The limits of the files of one e-mail. In base64, MaxEnclosed has 28 MB; Gmail takes messages of 35 MB.
const (
	MaxEnclosures = 16
	MaxEnclosed   = 20 << 20 // bytes of all files

	maxFileName = 200      // bytes
	maxWithFile = 64 << 20 // bytes of Gmail's answers about an e-mail with files
)

// enclosing limits the bytes of files in e-mails that an instance handles at once. During a request they are in memory
// as files, as parts of the e-mail, and in Gmail's answer.
var enclosing = semaphore.NewWeighted(MaxEnclosed)

// Enclosure is a file that leaves with an e-mail: one that the user attached in the conversation, or one of an e-mail
// in the mailbox.
type Enclosure struct {
	File      string    `json:"file,omitempty" jsonschema:"The name of a file that the user attached in this conversation."`
	MessageID string    `json:"messageId,omitempty" jsonschema:"For a file of a mail instead: Gmail's id of that mail."`
	Part      string    `json:"part,omitempty" jsonschema:"With messageId: the part, as gmail_read lists it."`
	Is        *Enclosed `json:"is,omitempty"` // in no schema
}

// Enclosed is a file as the server has read it. Neither the model nor the user writes it, and the bytes are compared
// with the SHA-256 before the e-mail leaves.
type Enclosed struct {
	Name   string `json:"name"` // that the recipients see
	Type   string `json:"type"`
	Size   int    `json:"size"` // bytes
	SHA256 string `json:"sha256"`
	Stored string `json:"stored,omitempty"` // where a file of the conversation is stored, as a URI
	From   string `json:"from,omitempty"`   // the sender of the e-mail that has the file
	Risk   string `json:"risk,omitempty"`   // why its recipients may be harmed
}

// source is an enclosure without the facts about it.
func (e Enclosure) source() Enclosure {
	e.Is = nil
	return e
}

// target returns the file as a target of the e-mail.
func (e Enclosure) target() tool.Target {
	return tool.Target{Kind: targetFile, Value: cmp.Or(e.File, e.MessageID+"/"+e.Part)}
}

// partID matches the ID of a part. An e-mail that is nothing but a file is one part without an ID.
var partID = lazyregexp.New(`^$|^[0-9]{1,4}(\.[0-9]{1,4}){0,20}$`)

func normalizeEnclosures(all []Enclosure) error {
	if len(all) > MaxEnclosures {
		return fault.Invalid("attachments", "%d files; the limit is %d", len(all), MaxEnclosures)
	}
	size := 0
	for i, e := range all {
		at := fmt.Sprintf("attachments[%d].", i)
		switch {
		case (e.File == "") == (e.MessageID == ""):
			return fault.Invalid(at+"file", "either file, or messageId and part, is required")
		case e.File != "" && e.Part != "":
			return fault.Invalid(at+"part", "part requires messageId")
		case e.MessageID != "" && !threadID.MatchString(e.MessageID):
			return fault.Invalid(at+"messageId", "not a Gmail ID")
		case e.MessageID != "" && !partID.MatchString(e.Part):
			return fault.Invalid(at+"part", "not a part that gmail_read lists")
		case slices.ContainsFunc(all[:i], func(o Enclosure) bool { return o.source() == e.source() }):
			return fault.Invalid(at+"file", "duplicate file")
		}
		if e.Is != nil {
			size += e.Is.Size
		}
	}
	if size > MaxEnclosed {
		return fault.Invalid("attachments", "%d bytes in all; the limit is %d", size, MaxEnclosed)
	}
	return nil
}

// withoutFacts returns the arguments without the facts about files.
func withoutFacts(a Args) Args {
	a.Attachments = slices.Clone(a.Attachments)
	for i := range a.Attachments {
		a.Attachments[i].Is = nil
	}
	return a
}

// keepEnclosed returns the edited list with the facts that the card showed. A file that the card has not shown has
// none, and the e-mail is then not sent.
func keepEnclosed(before, edited []Enclosure) []Enclosure {
	edited = slices.Clone(edited)
	for i, e := range edited {
		for _, b := range before {
			if b.source() == e.source() {
				edited[i].Is = b.Is
			}
		}
	}
	return edited
}

// enclose fills in the facts about each file, and adds the files of a forwarded e-mail.
func (s *sender) enclose(ctx context.Context, c tool.Call, a Args) (Args, error) {
	a.Attachments = a.withForwarded()
	if len(a.Attachments) == 0 {
		return a, nil
	}
	if err := normalizeEnclosures(a.Attachments); err != nil { // before anything is fetched
		return a, err
	}
	release, err := hold(ctx, MaxEnclosed) // their sizes are not known yet
	if err != nil {
		return a, err
	}
	defer release()
	mails, size := fetched{}, 0
	for i, e := range a.Attachments {
		is, err := s.enclosed(ctx, c, e, mails)
		if err != nil {
			return a, err
		}
		if size += is.Size; size > MaxEnclosed {
			return a, fault.Invalid(fmt.Sprintf("attachments[%d]", i), "%d bytes with the files before it; the limit "+
				"is %d", size, MaxEnclosed)
		}
		a.Attachments[i].Is = is
	}
	return a, nil
}

// withForwarded returns a copy of the list of files, with those of the forwarded e-mail that fit. Origin names the
// files that the new mail leaves out.
func (a Args) withForwarded() []Enclosure {
	all := slices.Clone(a.Attachments)
	if a.Forward == nil || a.Origin == nil {
		return all
	}
	var size int64
	for _, f := range a.Origin.files {
		e := Enclosure{MessageID: a.Forward.MessageID, Part: f.Part}
		size += f.Size
		switch {
		case slices.ContainsFunc(all, func(o Enclosure) bool { return o.source() == e }):
		case a.Forward.WithoutAttachments, len(all) == MaxEnclosures, size > MaxEnclosed, f.Type == "message/rfc822":
			a.Origin.Left = append(a.Origin.Left, cmp.Or(f.Name, f.Type))
			size -= f.Size
		default:
			all = append(all, e)
		}
	}
	return all
}

// enclosed returns the facts about one file.
func (s *sender) enclosed(ctx context.Context, c tool.Call, e Enclosure, mails fetched) (*Enclosed, error) {
	if e.File == "" {
		m, p, data, err := s.inMail(ctx, c, e, mails)
		if err != nil {
			return nil, err
		}
		kind, _ := typeOf(p)
		name := fileName(mailtext.Header(p.Filename))
		return &Enclosed{Name: name, Type: typeName(kind), Size: len(data), SHA256: digest(data),
			From: senderOf(headersOf(m.Payload).get("From")), Risk: riskOf(name, data)}, nil
	}
	if s.files == nil {
		return nil, fault.Invalid("attachments", "files of the conversation cannot be sent here")
	}
	f, stored, err := s.files.Find(ctx, c, e.File)
	if err != nil {
		return nil, err
	}
	data, err := s.files.Read(ctx, c.UID, stored, f.SHA256)
	name := fileName(f.Name)
	return &Enclosed{Name: name, Type: f.Type, Size: f.Size, SHA256: f.SHA256, Stored: stored,
		Risk: riskOf(name, data)}, err
}

// fetched are e-mails by their ID: several files may be of one e-mail.
type fetched map[string]*gmailapi.Message

// inMail returns a file of an e-mail: the e-mail, the part, and the bytes.
func (s *sender) inMail(ctx context.Context, c tool.Call, e Enclosure, mails fetched) (m *gmailapi.Message,
	p *gmailapi.MessagePart, data []byte, err error) {
	if s.origins == nil {
		return nil, nil, nil, fault.Invalid("attachments", "e-mails cannot be read here")
	}
	svc, err := s.large().service(ctx, c)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	if m = mails[e.MessageID]; m == nil {
		if m, err = whole(ctx, svc, e.MessageID); err != nil {
			return nil, nil, nil, err
		}
		mails[e.MessageID] = m
	}
	p, data, err = content(ctx, svc, m, e.Part)
	return m, p, data, err
}

// content returns a part of an e-mail that is a file, and its bytes.
func content(ctx context.Context, svc *gmailapi.Service, m *gmailapi.Message, part string) (*gmailapi.MessagePart,
	[]byte, error) {
	p := partOf(m.Payload, part, maxParts)
	if p == nil || p.Body == nil || len(p.Parts) > 0 && p.Body.AttachmentId == "" {
		return nil, nil, &fault.Error{Class: fault.Tool, Code: "no_file", Field: "attachments",
			Message: "That mail has no such file, or Gmail does not give it out: an attached e-mail cannot be sent on."}
	}
	text := p.Body.Data
	if p.Body.AttachmentId != "" {
		body, err := svc.Users.Messages.Attachments.Get("me", m.Id, p.Body.AttachmentId).Context(ctx).Do()
		if err != nil {
			return nil, nil, unopened(err, "gmail.messages.attachments.get")
		}
		text = body.Data
	}
	data, err := base64.URLEncoding.WithPadding(base64.NoPadding).DecodeString(strings.TrimRight(text, "="))
	if err != nil || int64(len(data)) != p.Body.Size {
		return nil, nil, tool.Transient(fault.New(fault.Tool, "provider_failed", "Gmail's answer could not be read."))
	}
	return p, data, nil
}

// partOf returns the part with the ID, or nil. It looks at most at so many parts.
func partOf(p *gmailapi.MessagePart, id string, most int) *gmailapi.MessagePart {
	todo := []*gmailapi.MessagePart{p}
	for looked := 0; len(todo) > 0 && looked < most; looked++ {
		p, todo = todo[0], todo[1:]
		if p == nil {
			continue
		}
		if p.PartId == id {
			return p
		}
		todo = append(todo, p.Parts...)
	}
	return nil
}

// contents returns the bytes of the files of an approved e-mail, or an error if they are not those that the card
// showed.
func (s *sender) contents(ctx context.Context, c tool.Call, all []Enclosure) (files [][]byte, err error) {
	mails := fetched{}
	for _, e := range all {
		var data []byte
		switch {
		case e.Is == nil || e.File != "" && (s.files == nil || e.Is.Stored == ""):
			err = changedFile()
		case e.File != "":
			data, err = s.files.Read(ctx, c.UID, e.Is.Stored, e.Is.SHA256)
		default:
			_, _, data, err = s.inMail(ctx, c, e, mails)
		}
		if err == nil && digest(data) != e.Is.SHA256 {
			err = changedFile()
		}
		if err != nil {
			return nil, err
		}
		files = append(files, data)
	}
	return files, nil
}

func changedFile() error {
	return fault.New(fault.Policy, fault.CodeStaleView, "A file of this e-mail is not as the approval showed it. "+
		"Nothing was sent. Please ask for it again.")
}

// hold waits until the instance has room for the given number of bytes of files. The caller releases them.
func hold(ctx context.Context, size int) (release func(), err error) {
	if size = min(size, MaxEnclosed); size == 0 {
		return func() {}, nil
	}
	if err := enclosing.Acquire(ctx, int64(size)); err != nil {
		return nil, tool.Transient(fault.New(fault.Tool, fault.CodeOverloaded,
			"The server has as many files as it can hold at once. Nothing was sent.").Because(err))
	}
	return func() { enclosing.Release(int64(size)) }, nil
}

// enclosedSize returns the bytes of the files.
func (a Args) enclosedSize() (size int) {
	for _, e := range a.Attachments {
		if e.Is != nil {
			size += e.Is.Size
		}
	}
	return size
}

// fileName returns a name that each reader sees as it is, and that names no folder.
func fileName(name string) string {
	name, _ = visible.Line(strings.TrimSpace(name))
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == '"' {
			return '_'
		}
		return r
	}, name)
	return cmp.Or(clip.Prefix(name, maxFileName), "attachment")
}

var plainType = lazyregexp.New(`^[a-z0-9]+/[a-z0-9][a-z0-9.+-]{0,80}$`)

// typeName returns the type of a file, without parameters. For an invalid type, and for one that mail programs would
// show as a part of the e-mail, it returns the type of any file.
func typeName(kind string) string {
	top, _, _ := strings.Cut(kind, "/")
	if !plainType.MatchString(kind) || top == "multipart" || top == "message" {
		return "application/octet-stream"
	}
	return kind
}

// addEnclosures shows the files that leave with the e-mail.
func addEnclosures(p *tool.Preview, a Args) {
	for i, e := range a.Attachments {
		label := fmt.Sprintf("File %d", i+1)
		if e.Is == nil {
			p.AddLine(label, cmp.Or(e.File, "part "+e.Part+" of the mail "+e.MessageID))
			p.Warn("%s was not read, so this e-mail will not be sent. Ask for an e-mail with that file.", label)
			continue
		}
		value := fmt.Sprintf("%s\n%s, %s\nSHA-256 %s", e.Is.Name, e.Is.Type, bytesOf(e.Is.Size), e.Is.SHA256)
		if e.MessageID != "" {
			value += "\nfrom an e-mail of " + e.Is.From
		}
		p.AddText(label, value)
		if e.Is.Risk != "" {
			p.Warn("%s (%s) %s.", label, e.Is.Name, e.Is.Risk)
		}
	}
}

func bytesOf(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
