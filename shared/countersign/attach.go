package countersign

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/engine/upload"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// Attachment is a file that goes to the model with a prompt: a PDF, a picture (PNG, JPEG, WebP, HEIC), a video (MP4,
// MOV, 3GP, WebM, MPEG), a sound (MP3, WAV, AAC, M4A, Ogg, FLAC, WebM), or text in UTF-8, such as Markdown or CSV. Its
// content decides its type; its name does not. A prompt takes up to 16 files with 20 MiB in all. Above 1.5 MiB,
// [Options.Files] keeps their bytes.
//
// Strangers may have written a file. A call in a session that has read a file therefore needs approval, even if the
// user always allows such calls.
type Attachment struct {
	name string
	data []byte
	err  error
}

// Attach attaches the bytes that r yields until its end. It stops reading above the limit, and leaves r open. The model
// and the user see the name.
func Attach(name string, r io.Reader) Attachment {
	data, err := io.ReadAll(io.LimitReader(r, attachment.MaxUpload+1))
	return Attachment{name, data, err}
}

// AttachFile attaches the file at a path of the program. The model cannot choose the path.
func AttachFile(path string) Attachment {
	a := Attachment{name: filepath.Base(path)}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if a.err = err; err != nil {
		return a
	}
	f, err := os.Open(path)
	if err != nil {
		a.err = err
		return a
	}
	a = Attach(a.name, f)
	a.err = errors.Join(a.err, f.Close())
	return a
}

// filesOf returns the attachments in the form that the loop stores. The error names the first wrong one.
func (a *Agent) filesOf(attachments []Attachment) (files []attachment.File, err error) {
	if len(attachments) > attachment.MaxFiles {
		return nil, fault.Invalid("files", "%d files; the limit is %d", len(attachments), attachment.MaxFiles)
	}
	limit, also := attachment.MaxUpload, ""
	if a.core.options.Files == nil {
		limit, also = attachment.MaxBytes, "; Options.Files keeps larger ones"
	}
	size := 0
	for _, a := range attachments {
		if a.err != nil {
			name, _ := visible.Line(a.name)
			return nil, fault.Invalid("files", "%s could not be read", name).Because(a.err)
		}
		if size += len(a.data); size > limit {
			return nil, fault.Invalid("files", "the files have more than %d bytes in total%s", limit, also)
		}
		f, err := attachment.New(a.name, a.data)
		if err != nil {
			return nil, fault.Invalid("files", "%q: %s", a.name, fault.As(err).Message)
		}
		files = append(files, f)
	}
	return files, nil
}

// upload stores the files that do not fit beside a run, and refers to them in place of their bytes.
func (a *Agent) upload(ctx context.Context, files []attachment.File) error {
	l, beside := a.core.loop, 0
	for i, f := range files {
		if beside += len(f.Data); beside <= attachment.MaxBytes {
			continue
		}
		beside -= len(f.Data)
		u, err := upload.Uploads{Store: l.Store, Files: l.Files, Now: l.Now, Random: l.Random}.Add(ctx, a.user, f)
		if err != nil {
			return public(unit.StoreError(err))
		}
		files[i] = u.File(f.Name)
	}
	return nil
}
