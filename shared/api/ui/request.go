package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/stream"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// Request has the fields of a useChat request that count.
type Request struct {
	ID       string            `json:"id"` // the client's ID for the conversation
	Messages []json.RawMessage `json:"messages"`
}

// message is one of the client's messages.
type message struct {
	ID    string `json:"id"`
	Role  string `json:"role"`
	Parts []part `json:"parts"`

	// of version 4
	Content     json.RawMessage `json:"content"`
	Attachments []struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	} `json:"experimental_attachments"`
}

// part is a part of a message: text, a file, or a call with the user's answer.
type part struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Filename string          `json:"filename"`
	URL      string          `json:"url"`
	Bytes    json.RawMessage `json:"data"` // a file's bytes in base64, in version 4; anything in a part of data
	State    string          `json:"state"`
	Approval *struct {
		ID       string `json:"id"`
		Approved *bool  `json:"approved"`
		Reason   string `json:"reason"`
	} `json:"approval"`
}

// An Answer is a user's approval or rejection of exactly what they saw.
type Answer struct {
	ApprovalID, ArgsHash string
	Approved             bool
	Comment              string
	Field                string // place in the request, for errors
}

// Newest is the content of the newest message: the user's words with files and the message's ID, or their answers to
// one run.
type Newest struct {
	ID, Words string
	Files     []stream.File
	Answers   []Answer
}

// Newest returns the content of the newest message. It ignores the rest of the conversation.
func (r Request) Newest() (n Newest, err error) {
	if err := stream.CheckID("id", r.ID); err != nil {
		return n, err
	}
	at := stream.Newest(r.Messages)
	if at < 0 {
		return n, fault.Invalid("messages", "a message of the user is required")
	}
	field := fmt.Sprintf("messages/%d", at)
	newest, err := readMessage(r.Messages[at], true)
	if err != nil {
		return n, fault.Within(field, err)
	}
	switch newest.Role {
	case "user":
		n.ID = newest.ID
		n.Words, n.Files, err = newest.words(field)
	case "assistant":
		n.Answers, err = newest.answers(field)
	default:
		err = fault.Invalid(field+"/role", "the newest message is the user's, or the assistant's with answers")
	}
	return n, err
}

// readMessage decodes the fields of a message that count: its answers to approvals, and if words is set, its words and
// files. The rest of it, such as the output of a tool or a part of data, may be anything.
func readMessage(raw json.RawMessage, words bool) (m message, err error) {
	raw = strictjson.Pick(strictjson.Mend(raw), "id", "role", "parts", "content", "experimental_attachments")
	rest, parts, err := strictjson.Split(raw, "parts")
	if err == nil {
		err = strictjson.DecodeKnown(rest, &m)
	}
	if err != nil {
		return m, err
	}
	m.Parts = make([]part, len(parts))
	for i, raw := range parts {
		var kind struct{ Type, State string }
		if json.Unmarshal(raw, &kind) == nil && kind.State != answered &&
			!(words && (kind.Type == "text" || kind.Type == "file")) {
			continue
		}
		used := strictjson.Pick(raw, "type", "text", "filename", "url", "data", "state", "approval")
		if err := strictjson.DecodeKnown(used, &m.Parts[i]); err != nil {
			return m, fault.Within(fmt.Sprintf("parts/%d", i), err)
		}
	}
	return m, nil
}

// words returns the user's words and files.
func (m message) words(field string) (words string, files []stream.File, err error) {
	if err := stream.CheckID(field+"/id", m.ID); err != nil {
		return "", nil, err
	}
	var texts []string
	for i, p := range m.Parts {
		switch p.Type {
		case "text":
			texts = append(texts, p.Text)
		case "file":
			f, err := p.file(fmt.Sprintf("%s/parts/%d", field, i))
			if err != nil {
				return "", nil, err
			}
			files = append(files, f)
		}
	}
	for i, a := range m.Attachments {
		f, err := stream.FileOfURL(fmt.Sprintf("%s/experimental_attachments/%d/url", field, i), a.Name, a.URL)
		if err != nil {
			return "", nil, err
		}
		files = append(files, f)
	}
	var content string
	if len(texts) == 0 && json.Unmarshal(m.Content, &content) == nil { // next to parts, content repeats their words
		texts = append(texts, content)
	}
	words = strings.Join(texts, "\n\n")
	if visible.Blank(words) {
		return "", nil, fault.Invalid(field+"/parts", "a text is required")
	}
	return words, files, nil
}

// file returns the part's file.
func (p part) file(field string) (stream.File, error) {
	var data string
	if p.URL == "" && json.Unmarshal(p.Bytes, &data) == nil && data != "" {
		return stream.FileOfBase64(field+"/data", p.Filename, data)
	}
	return stream.FileOfURL(field+"/url", p.Filename, p.URL)
}

// answered is the state of a call that the user has answered and whose outcome the client does not know yet.
const answered = "approval-responded"

// maxEarlier limits how many answers Earlier returns. By default a user has at most 20 open approvals.
const maxEarlier = 20

// Earlier returns the answers in the messages before the newest one, newest first, one for each approval: a rejection,
// if there are both. The client also keeps answers there that were recorded long ago. An unreadable message is skipped.
func (r Request) Earlier() (answers []Answer) {
	for at := stream.Newest(r.Messages) - 1; at >= 0; at-- {
		if !bytes.Contains(r.Messages[at], []byte(answered)) {
			continue
		}
		m, err := readMessage(r.Messages[at], false)
		if err != nil || m.Role != "assistant" {
			continue
		}
		for i, p := range m.Parts {
			a, ok := p.answer(fmt.Sprintf("messages/%d/parts/%d/approval", at, i))
			if !ok || a.ApprovalID == "" {
				continue
			}
			answers = with(answers, a)
		}
	}
	return answers[:min(len(answers), maxEarlier)]
}

// with adds an answer. Of two answers to one approval, a rejection counts.
func with(answers []Answer, a Answer) []Answer {
	known := slices.IndexFunc(answers, func(b Answer) bool { return b.ApprovalID == a.ApprovalID })
	if known < 0 {
		return append(answers, a)
	}
	if !a.Approved {
		answers[known] = a
	}
	return answers
}

// answer returns the user's answer in a part, if it has one. Its ApprovalID is empty if the part does not carry the
// hash of the shown call.
func (p part) answer(field string) (a Answer, ok bool) {
	if p.State != answered || p.Approval == nil || p.Approval.Approved == nil {
		return Answer{}, false
	}
	a = Answer{Approved: *p.Approval.Approved, Comment: p.Approval.Reason, Field: field}
	id, hash, bound := strings.Cut(p.Approval.ID, "~")
	if _, of := run.RunOfApproval(id); bound && of && hash != "" {
		a.ApprovalID, a.ArgsHash = id, hash
	}
	return a, true
}

func (m message) answers(field string) (answers []Answer, err error) {
	for i, p := range m.Parts {
		a, ok := p.answer(fmt.Sprintf("%s/parts/%d/approval", field, i))
		if !ok {
			continue
		}
		if a.ApprovalID == "" {
			return nil, fault.Invalid(a.Field+"/id", "not the ID of an approval, a ~ and the hash of what it shows")
		}
		if len(answers) > 0 && !sameRun(answers[0], a) {
			return nil, fault.Invalid(a.Field+"/id", "all answers in one message must be for the same run")
		}
		answers = with(answers, a)
	}
	if len(answers) == 0 {
		return nil, fault.Invalid(field, "the newest message is the assistant's, and has no answer to an approval")
	}
	return answers, nil
}

func sameRun(a, b Answer) bool {
	one, _ := run.RunOfApproval(a.ApprovalID)
	other, _ := run.RunOfApproval(b.ApprovalID)
	return one == other
}

// BoundID is the ID that a client gets for an approval. It includes the hash of what the approval shows, so a plain yes
// approves exactly that.
func BoundID(approvalID, argsHash string) string { return approvalID + "~" + argsHash }
