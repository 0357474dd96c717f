package attachment

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/store/document"
)

// Scheme begins the URI of a stored file.
const Scheme = "countersign:"

// Ref locates a stored file. Its text is a URI, which replaces the file's bytes in a stored conversation.
type Ref struct {
	RunID        string
	First, Parts int
	Size         int // bytes of the file
}

// Ref returns the reference to a file of the run.
func (s Stored) Ref(runID string) Ref { return Ref{runID, s.First, s.Parts, s.Size} }

// String returns the reference as a URI.
func (r Ref) String() string {
	return fmt.Sprintf("%s%s/%d/%d/%d", Scheme, r.RunID, r.First, r.Parts, r.Size)
}

// ParseRef parses a reference. ok is false for any other text.
func ParseRef(uri string) (r Ref, ok bool) {
	rest, ours := strings.CutPrefix(uri, Scheme)
	id, numbers, _ := strings.Cut(rest, "/")
	if _, err := fmt.Sscanf(numbers, "%d/%d/%d", &r.First, &r.Parts, &r.Size); err != nil || !ours {
		return Ref{}, false
	}
	r.RunID = id
	possible := r.First > 0 && r.Parts > 0 && r.First <= MaxParts && r.First+r.Parts-1 <= MaxParts &&
		r.Size >= 0 && r.Size <= MaxUpload
	if !possible || id == "" || strings.Contains(id, "/") || r.String() != uri {
		return Ref{}, false
	}
	return r, true
}

// Paths returns the paths of the file's documents.
func (r Ref) Paths() (all []string) {
	for i := range r.Parts {
		all = append(all, document.FilePath(r.RunID, r.First+i))
	}
	return all
}

// Estimates of the tokens of a file, used if the service did not count them. Gemini counts a picture as at most 1,120
// tokens, a page of a PDF as at most 560, a second of sound as 32, and a second of video as 300. A second of sound has
// at least 8 KiB in most files, and a second of video 120 KiB.
const (
	bytesPerToken = 4
	pictureTokens = 1120
	pageTokens    = 560
	pageBytes     = 10 << 10
	soundBytes    = 8 << 10 / 32
	videoBytes    = 120 << 10 / 300
)

// Tokens estimates the tokens of a file with the MIME type.
func (r Ref) Tokens(mime string) int {
	switch {
	case strings.HasPrefix(mime, "image/"):
		return pictureTokens
	case strings.HasPrefix(mime, "audio/"):
		return r.Size/soundBytes + 1
	case strings.HasPrefix(mime, "video/"):
		return r.Size/videoBytes + 1
	case mime == "application/pdf":
		return pageTokens * (1 + r.Size/pageBytes)
	}
	return r.Size/bytesPerToken + 1
}
