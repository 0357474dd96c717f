package chat

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/document"
)

// maxFiles is the maximum number of files that a conversation follows. The model gets no older ones.
const maxFiles = 64

// sentFile is a file of one of the conversation's messages. The bytes are an uploaded file of the user, and the history
// has a reference in their place. Like every uploaded file that no run has, it is deleted a day after its upload.
type sentFile struct {
	Ref    string `json:"ref"`
	FileID string `json:"fileId"`
	Name   string `json:"name,omitempty"` // empty: the name that the file was uploaded with
}

// upload uploads the files that came with the message, because the page would otherwise have to send their bytes again
// with each request.
func (c *Chat) upload(ctx context.Context, uid string, files []attachment.File) error {
	for i, f := range files {
		if f.FileID != "" {
			continue
		}
		u, err := c.Ledger.Upload(ctx, uid, f)
		if err != nil {
			return err
		}
		files[i] = u.File(f.Name)
	}
	return nil
}

// fileWrites returns the documents that lead to the files of the new message and of the conversation, for the request's
// own store. A file that was deleted, or that belongs to another user, has no document.
func (c *Chat) fileWrites(ctx context.Context, r Request, h *history) (writes []store.Write, err error) {
	uploads, err := c.findUploads(ctx, r, h)
	if err != nil {
		return nil, err
	}
	written := map[string]bool{}
	for _, f := range r.Files {
		if u := uploads[f.FileID]; u.doc.Exists() && !written[f.FileID] {
			written[f.FileID] = true
			writes = append(writes, store.Create(u.doc.Path, u.Fields(), u.doc.Data))
		}
	}
	for _, f := range h.Files {
		ref, ok := attachment.ParseRef(f.Ref)
		u := uploads[f.FileID]
		if !ok || !u.doc.Exists() {
			continue
		}
		files := []attachment.File{u.File(f.Name)}
		stored := attachment.Describe(files)
		stored[0].First = ref.First
		for path, part := range attachment.Documents(r.UID, ref.RunID, files, stored) {
			data, err := strictjson.Marshal(part)
			if err != nil {
				return nil, err
			}
			writes = append(writes, store.Create(path, nil, data))
		}
	}
	return writes, nil
}

// foundUpload is an uploaded file of the user, with its document.
type foundUpload struct {
	attachment.Upload
	doc store.Doc
}

// findUploads reads the uploaded files of the new message and of the conversation, by ID. It reads nothing if there are
// none.
func (c *Chat) findUploads(ctx context.Context, r Request, h *history) (map[string]foundUpload, error) {
	found := map[string]foundUpload{}
	var paths []string
	ask := func(id string) {
		if _, asked := found[id]; !asked {
			found[id] = foundUpload{}
			paths = append(paths, document.UploadPath(id))
		}
	}
	for _, f := range r.Files {
		ask(f.FileID)
	}
	for _, f := range h.Files {
		ask(f.FileID)
	}
	if len(paths) == 0 {
		return nil, nil
	}
	docs, err := c.Core.Store.Get(ctx, paths...)
	if err != nil {
		return nil, unit.StoreError(err)
	}
	for _, d := range docs {
		var u attachment.Upload
		if !d.Exists() {
			continue
		}
		if err := document.Decode(d, &u); err != nil {
			return nil, err
		}
		if u.UID == r.UID {
			found[u.FileID] = foundUpload{u, d}
		}
	}
	return found, nil
}

// keep stores the contents, and follows the files that they refer to. files are those of the new message, which the run
// has stored.
func (h *history) keep(contents []json.RawMessage, runID string, files []attachment.File) {
	h.contents, h.calls = contents, nil
	known := map[string]sentFile{}
	for _, f := range h.Files {
		known[f.Ref] = f
	}
	h.Files = nil
	for _, ref := range model.Files(contents...) {
		f, ok := known[ref.String()]
		if i := ref.First - 1; !ok && ref.RunID == runID && i < len(files) {
			f, ok = sentFile{ref.String(), files[i].FileID, files[i].Name}, true
		}
		if ok {
			h.Files = append(h.Files, f)
		}
	}
	h.Files = h.Files[max(0, len(h.Files)-maxFiles):]
}
