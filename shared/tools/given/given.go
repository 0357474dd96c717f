// Package given reads the files that users attached in their conversations, for the tools that pass such files on.
package given

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/store/document"
)

// CodeNoFile is the code of the error for a file that the conversation does not have.
const CodeNoFile = fault.Code("no_file")

// Files are the files of all conversations.
type Files struct {
	Store   store.Store
	Objects blob.Store // has the bytes of uploaded files; nil: none can be read
}

// Find returns the newest file with the name in the call's conversation, and where it is stored, as a URI. The model
// reads the error.
func (f Files) Find(ctx context.Context, c tool.Call, name string) (facts attachment.Facts, stored string, err error) {
	var t run.Thread
	var d store.Doc
	if c.ThreadID != "" {
		if d, err = document.Get(ctx, f.Store, document.ThreadPath(c.ThreadID), &t); err != nil {
			return facts, "", tool.Transient(err)
		}
	}
	file, ref, ok := t.File(name)
	if !d.Exists() || t.UID != c.UID || !ok {
		return facts, "", &fault.Error{Class: fault.Tool, Code: CodeNoFile, Field: "file",
			Message: "The user has attached no file with this name in this conversation. Ask for it."}
	}
	return file.Facts, ref.String(), nil
}

// Read returns the stored bytes of the user's file. Its errors state that nothing was done.
func (f Files) Read(ctx context.Context, uid, stored, sha256 string) ([]byte, error) {
	ref, ok := attachment.ParseRef(stored)
	if !ok {
		return nil, fault.New(fault.Policy, fault.CodeIntegrity, "The file's location is unknown. Nothing was done.")
	}
	file, err := attachment.Read(ctx, f.Store, uid, ref)
	if err == nil {
		err = file.Fill(ctx, f.Objects)
	}
	switch {
	case errors.Is(err, attachment.ErrGone):
		return nil, fault.New(fault.Tool, CodeNoFile, "The file was deleted. Nothing was done.")
	case err != nil:
		return nil, tool.Transient(fault.New(fault.Tool, fault.CodeInternal,
			"The file cannot be read now. Nothing was done.").Because(err))
	case attachment.Describe([]attachment.File{*file})[0].SHA256 != sha256:
		return nil, fault.New(fault.Policy, fault.CodeIntegrity,
			"The file is not the one that was approved. Nothing was done.")
	}
	return file.Data, nil
}
