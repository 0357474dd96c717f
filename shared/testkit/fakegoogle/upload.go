package fakegoogle

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
)

// decodeWith reads a request whose message is in its JSON, or uploaded: alone (uploadType=media), or after the JSON
// (uploadType=multipart). A resumable upload is not served locally.
func decodeWith(r request, into any, m **wireMessage) *apiError {
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var body io.Reader
	switch how := r.URL.Query().Get("uploadType"); {
	case how == "":
		return decode(r, into)
	case how == "media" && kind == "message/rfc822":
		body = r.Body
	case how == "multipart" && kind == "multipart/related":
		parts := multipart.NewReader(r.Body, params["boundary"])
		data, e := nextPart(parts, "application/json")
		if e != nil {
			return e
		}
		if err := json.NewDecoder(data).Decode(into); err != nil {
			return badRequest("Invalid JSON payload received.")
		}
		if body, e = nextPart(parts, "message/rfc822"); e != nil {
			return e
		}
	default:
		return badRequest("Only simple and multipart uploads of message/rfc822 are served locally.")
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return &apiError{status: http.StatusRequestEntityTooLarge, reason: "uploadTooLarge",
			message: "The request is too large."}
	}
	if *m == nil {
		*m = &wireMessage{}
	}
	(*m).Raw = base64.URLEncoding.EncodeToString(raw)
	return nil
}

// nextPart returns the next part of an upload, which must have the type.
func nextPart(parts *multipart.Reader, want string) (io.Reader, *apiError) {
	p, err := parts.NextRawPart()
	if err != nil {
		return nil, badRequest("The upload has no part of the type " + want + ".")
	}
	if kind, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type")); kind != want {
		return nil, badRequest("The upload has a part of the type " + kind + " in place of " + want + ".")
	}
	return p, nil
}
