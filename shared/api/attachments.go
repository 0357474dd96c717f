package api

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"strconv"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// maxAttaching is the maximum size of a body with files: the files in base64, and everything else that a body has.
const maxAttaching = maxBody + attachment.MaxBytes/3*4

// attaching allows the handler's body to contain files.
func attaching(h handler) handler {
	return func(r *request) (any, error) {
		r.maxBody = maxAttaching
		return h(r)
	}
}

// attachedBody is a file in a request. The content decides the type. MIMEType is what the client takes it for, and is
// not used.
type attachedBody struct {
	Name     string `json:"name"`
	Data     string `json:"data"` // base64
	MIMEType string `json:"mimeType"`
}

// filesOf checks and decodes the files of a request. The error names the field of the first wrong file.
func filesOf(all []attachedBody) (files []attachment.File, err error) {
	if len(all) > attachment.MaxFiles {
		return nil, fault.Invalid("attachments", "%d files; the limit is %d", len(all), attachment.MaxFiles)
	}
	size := 0
	for i, a := range all {
		field := func(name string) string { return fmt.Sprintf("attachments[%d].%s", i, name) }
		data, err := base64.StdEncoding.DecodeString(a.Data)
		if err != nil {
			return nil, fault.Invalid(field("data"), "invalid base64 (RFC 4648, section 4, with padding)")
		}
		if size += len(data); size > attachment.MaxBytes {
			return nil, fault.Invalid(field("data"), "%d bytes with the files before it; the limit is %d", size,
				attachment.MaxBytes)
		}
		if _, _, err := mime.ParseMediaType(a.MIMEType); err != nil && a.MIMEType != "" {
			return nil, fault.Invalid(field("mimeType"), "a media type such as application/pdf is needed")
		}
		f, err := attachment.New(a.Name, data)
		if err != nil {
			e := *fault.As(err)
			e.Field = field(e.Field)
			return nil, &e
		}
		files = append(files, f)
	}
	return files, nil
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
