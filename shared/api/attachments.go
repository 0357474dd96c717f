package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/stream"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// The limits of a body with files: the files in base64, and everything else that a body has. Chat clients also send the
// files of earlier messages, which are ignored.
const (
	maxAttaching = maxBody + attachment.MaxBytes/3*4
	maxChatting  = 2 * maxAttaching
)

// attaching allows files in the handler's body.
func attaching(h handler) handler { return withFiles(h, maxAttaching, `"attachments"`) }

// chatting allows files in the messages of the handler's body, in parts that contain one of the texts.
func chatting(h handler, files ...string) handler { return withFiles(h, maxChatting, files...) }

// withFiles allows a larger body if it contains one of the texts.
func withFiles(h handler, limit int64, texts ...string) handler {
	return func(r *request) (any, error) {
		r.maxBody, r.fileTexts = limit, texts
		return h(r)
	}
}

// attachedBody is a file in a request. The content decides the type. MIMEType is the client's claim, and is not used.
type attachedBody struct {
	FileID   string `json:"fileId"` // of an uploaded file, which has no Data and may have another Name
	Name     string `json:"name"`
	Data     string `json:"data"` // base64
	MIMEType string `json:"mimeType"`
}

// filesOf checks and decodes the files of a request. The error names the field of the first wrong file.
func filesOf(all []attachedBody) ([]attachment.File, error) {
	if err := countFiles("attachments", len(all)); err != nil {
		return nil, err
	}
	var c checked
	for i, a := range all {
		field := func(name string) string { return fmt.Sprintf("attachments[%d].%s", i, name) }
		if a.FileID != "" {
			if err := c.addUploaded(a, field); err != nil {
				return nil, err
			}
			continue
		}
		data, err := base64.StdEncoding.DecodeString(a.Data)
		if err != nil {
			return nil, fault.Invalid(field("data"), "invalid base64 (RFC 4648, section 4, with padding)")
		}
		if _, _, err := mime.ParseMediaType(a.MIMEType); err != nil && a.MIMEType != "" {
			return nil, fault.Invalid(field("mimeType"), "must be a media type such as application/pdf")
		}
		if err := c.add(a.Name, data, field); err != nil {
			return nil, err
		}
	}
	return c.files, nil
}

// filesIn checks the files of a chat client's message. A file without a name gets its number as a name.
func filesIn(message []stream.File) ([]attachment.File, error) {
	var c checked
	for i, f := range message {
		if err := countFiles(f.Field, i+1); err != nil {
			return nil, err
		}
		at := func(string) string { return f.Field }
		if f.FileID != "" {
			if err := c.addUploaded(attachedBody{FileID: f.FileID, Name: f.Name}, at); err != nil {
				return nil, err
			}
			continue
		}
		if visible.Blank(f.Name) {
			f.Name = fmt.Sprintf("file %d", i+1)
		}
		if err := c.add(f.Name, f.Data, at); err != nil {
			return nil, err
		}
	}
	return c.files, nil
}

// inMessage returns an error about a file of the request with the file's place in a chat client's message.
func inMessage(message []stream.File, err error) error {
	if err == nil {
		return nil
	}
	e := *fault.As(err)
	for i, f := range message {
		if at := fmt.Sprintf("attachments[%d]", i); e.Field == at || strings.HasPrefix(e.Field, at+".") {
			e.Field = f.Field
			return &e
		}
	}
	return err
}

func countFiles(field string, n int) error {
	if n > attachment.MaxFiles {
		return fault.Invalid(field, "%d files; the limit is %d", n, attachment.MaxFiles)
	}
	return nil
}

// checked has the files that are within the limits.
type checked struct {
	files []attachment.File
	size  int // bytes
}

// add checks one more file. field returns the place of its name or data in the request.
func (c *checked) add(name string, data []byte, field func(string) string) error {
	if c.size += len(data); c.size > attachment.MaxBytes {
		return fault.Invalid(field("data"), "%d bytes with the files before it; the limit is %d", c.size,
			attachment.MaxBytes)
	}
	f, err := attachment.New(name, data)
	if err != nil {
		e := *fault.As(err)
		e.Field = field(e.Field)
		return &e
	}
	c.files = append(c.files, f)
	return nil
}

// addUploaded checks one more file that was uploaded before.
func (c *checked) addUploaded(a attachedBody, field func(string) string) error {
	switch {
	case !run.ValidID(a.FileID):
		return fault.Invalid(field("fileId"), "invalid ID")
	case a.Data != "":
		return fault.Invalid(field("data"), "must be absent, because fileId is set")
	default:
		c.files = append(c.files, attachment.File{Name: attachment.NameOf(a.Name), FileID: a.FileID})
		return nil
	}
}

// hashOf returns the hash of a chat client's prompt: its words, its files, and the model that it chooses.
func hashOf(p loop.Prompt) string {
	sum := sha256.Sum256([]byte(p.Text))
	for _, f := range attachment.Describe(p.Files) {
		sum = sha256.Sum256(fmt.Appendf(sum[:], "%q %s", f.Name, f.SHA256+f.FileID)) // an uploaded file has no SHA-256
	}
	if p.Model != "" {
		sum = sha256.Sum256(fmt.Appendf(sum[:], "%q", p.Model))
	}
	return hex.EncodeToString(sum[:])
}

// getAttachment sends a file of a run's prompt, for the browser to save and never to show.
func getAttachment(r *request) (any, error) {
	id, err := r.id("runId")
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil {
		n = 0 // no file has this number
	}
	leave, err := r.takePlace()
	if err != nil {
		return nil, err
	}
	defer leave()
	f, err := r.api.Loop.Attachment(r.Context(), r.uid, id, n)
	if err != nil {
		return nil, err
	}
	h := r.w.Header() // guard has set nosniff
	h.Set("Content-Type", f.Type)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(f.Data)))
	r.w.WriteHeader(http.StatusOK)
	_, _ = r.w.Write(f.Data) // a disconnected client is not an error
	return nil, nil
}
