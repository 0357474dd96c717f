package attachment

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Limits of uploaded files.
const (
	MaxUpload = 20 << 20       // bytes of one file, as many as a request to the model has
	MaxUnused = 32             // files of one user that no run has
	Unused    = 24 * time.Hour // how long a file is kept that no run has
	// Unfinished is how long the object of an upload is kept that was interrupted. It is longer than any request.
	Unfinished = 2 * time.Hour
)

// Upload is an uploaded file. Its bytes are an object ([blob.Store]), and its document says which. The document exists
// only while the object does:
//
//   - An upload first stores that the object is waste, due in some time ([Waste]). Then it creates the object. Then one
//     commit creates the file's document and removes the waste. An upload that dies leaves waste.
//   - The commit that creates a run with the file counts the run, and the commit that deletes the run counts it down.
//     The last one deletes the file's document and turns its object into waste ([Upload.Discard]), unless the user has
//     just uploaded the file again.
//   - The sweep deletes the objects that are due, each before its document.
//
// So no process has to list a bucket. Each commit names the version of the file's document that it has read: either a
// run gets the file or the file goes, and never both. Equal bytes of one user are one file. An object has a name of its
// own, so the deletion of an earlier upload of the same bytes cannot hit a later one.
type Upload struct {
	UID string `json:"uid,omitempty"`
	Facts
	Object    string    `json:"object"`
	Runs      int       `json:"runs"`               // number of runs with the file
	Fresh     bool      `json:"fresh,omitempty"`    // uploaded since a run last got it
	CreatedAt time.Time `json:"createdAt,omitzero"` // the last upload
}

// FileID returns the ID of the user's file with this SHA-256, in hex.
func FileID(uid, contentSHA256 string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "file %d:%s%s", len(uid), uid, contentSHA256))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// NewUpload returns the user's file, and the name of a new object for it.
func NewUpload(uid string, f File, objectID string, at time.Time) Upload {
	u := Upload{UID: uid, Facts: factsOf(f), Fresh: true, CreatedAt: at}
	u.FileID, u.Object = FileID(uid, u.SHA256), blob.Name(uid, u.SHA256, objectID)
	return u
}

// File returns the file for a prompt. An empty name is the one that it was uploaded with.
func (u Upload) File(name string) File {
	if name == "" {
		name = u.Name
	}
	return File{Name: name, Type: u.Type, LocationRemoved: u.LocationRemoved, FileID: u.FileID, upload: &u}
}

// Due returns when the file is deleted: a time after its last upload, or never while a run has it.
func (u Upload) Due() time.Time {
	if u.Runs > 0 {
		return document.Never
	}
	return u.CreatedAt.Add(Unused)
}

// Fields returns the fields of the file's document.
func (u Upload) Fields() map[string]any { return document.UploadFields(u.FileID, u.UID, u.Due()) }

// Write returns the write that stores the file's document in place of the one that was read.
func (u Upload) Write(read store.Doc) (store.Write, error) {
	data, err := strictjson.Marshal(u)
	if !read.Exists() {
		return store.Create(document.UploadPath(u.FileID), u.Fields(), data), err
	}
	return store.Update(read.Path, read.Version, u.Fields(), data), err
}

// Discard returns the writes that delete the document that was read, and turn its object into waste that is due now.
func (u Upload) Discard(read store.Doc, now time.Time) ([]store.Write, error) {
	waste, err := Waste(u.Object, now)
	return []store.Write{store.Delete(read.Path, read.Version), waste}, err
}

// Release returns the writes after one run less has the file.
func (u Upload) Release(read store.Doc, now time.Time) ([]store.Write, error) {
	if u.Runs--; u.Runs <= 0 && !u.Fresh {
		return u.Discard(read, now)
	}
	w, err := u.Write(read)
	return []store.Write{w}, err
}

// Waste returns the write that has an object deleted when it is due.
func Waste(object string, due time.Time) (store.Write, error) {
	data, err := strictjson.Marshal(Upload{Object: object})
	id := blob.ID(object)
	return store.Create(document.WastePath(id), document.UploadFields(id, "", due), data), err
}

// Uploaded returns the IDs of the uploaded files among a run's documents, each once.
func Uploaded(docs []store.Doc) (ids []string, err error) {
	seen := map[string]bool{}
	for _, d := range docs {
		var p part
		if err := document.Decode(d, &p); err != nil {
			return nil, err
		}
		if p.File != nil && p.File.FileID != "" && !seen[p.File.FileID] {
			seen[p.File.FileID] = true
			ids = append(ids, p.File.FileID)
		}
	}
	return ids, nil
}

// Object returns the name of the object that has the file's bytes, or "" if the file came with its prompt.
func (f *File) Object() string {
	if f.upload == nil {
		return ""
	}
	return f.upload.Object
}

// Fill reads the bytes of an uploaded file. The error is [ErrGone], an error of the store, or the report that the
// object does not hold the file's bytes.
func (f *File) Fill(ctx context.Context, objects blob.Store) error {
	if f.upload == nil || f.Data != nil {
		return nil
	}
	if objects == nil {
		return errors.New("attachment: this process has no file store for an uploaded file; see FILES_BUCKET")
	}
	data, err := objects.Read(ctx, f.upload.Object)
	switch sum := sha256.Sum256(data); {
	case errors.Is(err, blob.ErrGone):
		return ErrGone
	case err != nil:
		return err
	case hex.EncodeToString(sum[:]) != f.upload.SHA256:
		return errors.New("attachment: the object's bytes differ from the file")
	}
	f.Data = data
	return nil
}
