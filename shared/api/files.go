package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/countersign-run/countersign/shared/api/stream"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// maxUploading is the limit of a body with one file of the largest size.
const maxUploading = attachment.MaxUpload + 64<<10

// places limits the files that an instance has in memory at once. Each file is in memory twice: plain and encrypted. A
// request waits for its place as long as placeTime.
var places = semaphore.NewWeighted(4)

const placeTime = 10 * time.Second

// uploading allows the handler's body to be a file.
func uploading(h handler) handler { return withFiles(h, maxUploading) }

// uploadedBody is the answer to an upload.
type uploadedBody struct {
	OK              bool      `json:"ok"`
	FileID          string    `json:"fileId"`
	URL             string    `json:"url"` // in the messages of chat clients
	Name            string    `json:"name"`
	Type            string    `json:"type"`
	Size            int       `json:"size"`
	SHA256          string    `json:"sha256"`
	LocationRemoved bool      `json:"locationRemoved,omitempty"`
	UnusedUntil     time.Time `json:"unusedUntil"` // when it is deleted unless a run has it
}

// postFile stores a file for later prompts.
func postFile(r *request) (any, error) {
	leave, err := r.takePlace()
	if err != nil {
		return nil, err
	}
	defer leave()
	name, data, err := r.file()
	if err != nil {
		return nil, err
	}
	f, err := attachment.New(name, data)
	if err != nil {
		return nil, fault.Within("file", err)
	}
	ctx, cancel := r.working()
	defer cancel()
	u, err := r.api.Records.Upload(ctx, r.uid, f)
	if err != nil {
		return nil, err
	}
	return uploadedBody{true, u.FileID, stream.URL(u.FileID), u.Name, u.Type, u.Size, u.SHA256, u.LocationRemoved,
		u.CreatedAt.Add(attachment.Unused)}, nil
}

// takePlace waits for a place for a file until leave is called.
func (r *request) takePlace() (leave func(), err error) {
	ctx, cancel := context.WithTimeout(r.Context(), placeTime)
	defer cancel()
	if err := places.Acquire(ctx, 1); err != nil {
		return nil, fault.New(fault.Tool, fault.CodeOverloaded,
			"The server has as many files as it can hold at once. Please try again.").After(again).Because(err)
	}
	return func() { places.Release(1) }, nil
}

// file reads a body of multipart/form-data with one part, a file with the name "file" (RFC 7578).
func (r *request) file() (name string, data []byte, err error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return "", nil, fault.New(fault.Validation, fault.CodeMediaType,
			"The body must be multipart/form-data with a part named file.")
	}
	err = r.receive(func(limit int64) error {
		parts := multipart.NewReader(http.MaxBytesReader(r.w, r.Body, limit), params["boundary"])
		name, data, err = onlyFile(parts, r.ContentLength)
		return err
	})
	return name, data, err
}

// onlyFile reads a form with one file. body is the length of the body in bytes, or -1 if it is unknown. The file's
// bytes are allocated once.
func onlyFile(parts *multipart.Reader, body int64) (name string, data []byte, err error) {
	part, err := parts.NextPart()
	switch {
	case err != nil && body > maxBody: // no other body may be as large
		return "", nil, &http.MaxBytesError{Limit: maxBody}
	case err != nil:
		return "", nil, errForm(err)
	}
	if part.FormName() != "file" || part.FileName() == "" {
		return "", nil, fault.Invalid("file", "the first part must be a file, named file and with a file name")
	}
	var buf bytes.Buffer
	buf.Grow(int(min(max(body, 0), attachment.MaxUpload)) + bytes.MinRead)
	if _, err = buf.ReadFrom(io.LimitReader(part, attachment.MaxUpload+1)); err != nil {
		return "", nil, errForm(err)
	}
	if buf.Len() > attachment.MaxUpload {
		return "", nil, fault.Invalid("file", "more than %d bytes, which is the limit", attachment.MaxUpload)
	}
	if _, err := parts.NextPart(); !errors.Is(err, io.EOF) {
		return "", nil, fault.Invalid("file", "must be the only part, followed by the end of the form").Because(err)
	}
	return part.FileName(), buf.Bytes(), nil
}

func errForm(err error) error {
	return fault.Invalid("file", "a form with one file is required (RFC 7578)").Because(err)
}
