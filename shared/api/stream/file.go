package stream

import (
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// File is a file in a client's message, in an answer, or in a tool's result.
type File struct {
	Name   string // "" if the client gave none
	Data   []byte
	FileID string // of an uploaded file, which has no Data
	Field  string // place in the request, for errors

	Facts attachment.Facts // of a file in an answer
}

// DataURL returns the bytes of a file in an answer as a data: URL.
func (f File) DataURL() string {
	return "data:" + f.Facts.Type + ";base64," + base64.StdEncoding.EncodeToString(f.Data)
}

// uploads begins the URL of an uploaded file.
const uploads = "countersign:file/"

// URL returns the URL of an uploaded file.
func URL(fileID string) string { return uploads + fileID }

// needed says what a URL of a file must be.
const needed = "a data: URL with the file's bytes is required, or the URL of a file that was uploaded"

// FileOfURL returns the file in a data: URL (RFC 2397), or the uploaded file with the URL ([URL]). The server does not
// fetch other URLs.
func FileOfURL(field, name, at string) (File, error) {
	if id, uploaded := strings.CutPrefix(at, uploads); uploaded {
		return File{Name: name, FileID: id, Field: field}, nil
	}
	scheme, rest, _ := strings.Cut(at, ":")
	switch strings.ToLower(scheme) {
	case "http", "https":
		return File{}, fault.Invalid(field, "the server does not fetch URLs; "+needed)
	case "data":
	default:
		return File{}, fault.Invalid(field, needed)
	}
	about, data, ok := strings.Cut(rest, ",")
	data, err := url.PathUnescape(data)
	if !ok || err != nil {
		return File{}, fault.Invalid(field, "invalid data: URL (RFC 2397)")
	}
	if params := strings.Split(about, ";"); strings.EqualFold(strings.TrimSpace(params[len(params)-1]), "base64") {
		return FileOfBase64(field, name, data)
	}
	return File{Name: name, Data: []byte(data), Field: field}, nil
}

// FileOfBase64 returns the file with these bytes in base64, with or without padding.
func FileOfBase64(field, name, text string) (File, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		data, err = base64.RawStdEncoding.DecodeString(text)
	}
	if err != nil {
		return File{}, fault.Invalid(field, "invalid base64 (RFC 4648, section 4)")
	}
	return File{Name: name, Data: data, Field: field}, nil
}
