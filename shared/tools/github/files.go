package github

import (
	"context"
	"strings"
	"unicode/utf8"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// The names of the tools that read files.
const (
	ListFiles = "github.listFiles"
	ReadFile  = "github.readFile"
)

const (
	maxListed  = 2000     // paths
	maxContent = 56 << 10 // octets of a file, in JSON form
	maxRead    = 5 << 19  // octets of a file that is read in parts; in base64 they fit into one answer from GitHub
)

// SomeFiles holds the arguments of a list of files.
type SomeFiles struct {
	Owner string `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo  string `json:"repo" jsonschema:"The repository's name."`
	Ref   string `json:"ref,omitempty" jsonschema:"A branch, a tag or a commit; left out: the default branch."`
	Path  string `json:"path,omitempty" jsonschema:"A folder; left out: all of the repository."`
}

// Files holds the files of a repository at a commit, by path.
type Files struct {
	Commit    string   `json:"commit,omitempty"` // empty: the repository has no commit yet
	Files     []Listed `json:"files"`
	Truncated bool     `json:"truncated,omitempty"` // whether there are more
}

// Listed is a file in a list.
type Listed struct {
	Path string `json:"path"`
	Size int    `json:"size"` // octets
}

func (h *hub) listFiles() *tool.Tool {
	return reader(h, ListFiles, "Lists the files of a GitHub repository, in all of its folders, 2,000 at most "+
		"(list a folder where that is truncated); null if there is none that the user may see.",
		inRepository(map[string]int{"ref": 200, "path": maxPath}),
		func(in SomeFiles) error {
			if err := repository(in.Owner, in.Repo); err != nil {
				return err
			}
			if in.Path != "" {
				if err := path("path", in.Path); err != nil {
					return err
				}
			}
			return revision(in.Ref)
		},
		func(ctx context.Context, api *githubapi.Client, in SomeFiles) (*Files, error) {
			head, err := commitAt(ctx, api, in)
			switch {
			case err != nil && read(err).Proof == provider.Conflict: // "Git Repository is empty."
				return &Files{Files: []Listed{}}, nil
			case err != nil || head.GetSHA() == "":
				return nil, err
			}
			tree, _, err := api.Git.GetTree(ctx, in.Owner, in.Repo, head.GetCommit().GetTree().GetSHA(), true)
			if err != nil || tree.GetSHA() == "" {
				return nil, err
			}
			out := listed(tree, in.Path)
			out.Commit = head.GetSHA()
			return out, nil
		})
}

// commitAt returns the commit for a list of files, or nil if GitHub's answer has none.
func commitAt(ctx context.Context, api *githubapi.Client, in SomeFiles) (*githubapi.RepositoryCommit, error) {
	log, _, err := api.Repositories.ListCommits(ctx, in.Owner, in.Repo, &githubapi.CommitsListOptions{SHA: in.Ref,
		ListOptions: githubapi.ListOptions{PerPage: 1}})
	if err != nil || len(log) == 0 {
		return nil, err
	}
	return log[0], nil
}

func listed(tree *githubapi.Tree, folder string) *Files {
	out, size := &Files{Files: []Listed{}, Truncated: tree.GetTruncated()}, 0
	for _, e := range tree.Entries {
		if e.GetType() != "blob" || folder != "" && !strings.HasPrefix(e.GetPath(), folder+"/") {
			continue
		}
		one := Listed{Path: clip.Text(e.GetPath(), maxLine), Size: e.GetSize()}
		size += clip.EncodedLen(one.Path) + len(`{"path":"","size":1234567890},`)
		if len(out.Files) == maxListed || size > maxContent {
			out.Truncated = true
			break
		}
		out.Files = append(out.Files, one)
	}
	return out
}

// OneFile names a file.
type OneFile struct {
	Owner string `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo  string `json:"repo" jsonschema:"The repository's name."`
	Path  string `json:"path" jsonschema:"The file's path in the repository."`
	Ref   string `json:"ref,omitempty" jsonschema:"A branch, a tag or a commit; left out: the default branch."`

	Offset     int `json:"offset,omitempty" jsonschema:"Lines to skip; left out: none."`
	Limit      int `json:"limit,omitempty" jsonschema:"Lines to return at most; left out: as many as fit, some 56 KiB."`
	ByteOffset int `json:"byteOffset,omitempty" jsonschema:"In place of offset: the byte to begin at, within a long line."`
}

// File is a file's content.
type File struct {
	Path      string `json:"path"`
	SHA       string `json:"sha"`
	Size      int    `json:"size"`                // octets
	Lines     int    `json:"lines,omitempty"`     // of the whole file
	Line      int    `json:"line,omitempty"`      // number of the content's first line
	From      int    `json:"from,omitempty"`      // byte of the file at which the content begins
	Offset    int    `json:"offset,omitempty"`    // From, in results of earlier releases
	Content   string `json:"content"`             // UTF-8
	Truncated bool   `json:"truncated,omitempty"` // whether there is more after the content
	Binary    bool   `json:"binary,omitempty"`    // it is not a text, and its content is left out

	NextOffset     int `json:"nextOffset,omitempty"`     // where the rest begins, if truncated
	NextByteOffset int `json:"nextByteOffset,omitempty"` // the same, within a long line
}

func (h *hub) readFile() *tool.Tool {
	return reader(h, ReadFile, "Reads a text file of a GitHub repository: some 56 KiB from the offset on, with its "+
		"size and sha; null if there is none that the user may see.",
		inRepository(map[string]int{"ref": 200, "path": maxPath, "offset": maxRead, "limit": maxRead,
			"byteOffset": maxRead}),
		func(in OneFile) error {
			if err := repository(in.Owner, in.Repo); err != nil {
				return err
			}
			if err := path("path", in.Path); err != nil {
				return err
			}
			return revision(in.Ref)
		},
		func(ctx context.Context, api *githubapi.Client, in OneFile) (*File, error) {
			f, folder, _, err := api.Repositories.GetContents(ctx, in.Owner, in.Repo, in.Path,
				&githubapi.RepositoryContentGetOptions{Ref: in.Ref})
			switch {
			case err != nil:
				return nil, err
			case folder != nil:
				return nil, fault.Invalid("path", "this is a folder: list its files")
			case f.GetSHA() == "":
				return nil, nil
			}
			s, err := whole(ctx, api, f, in)
			if err != nil {
				return nil, err
			}
			return content(f, s, in)
		})
}

// whole returns a whole file. GitHub returns the content of a file of more than a megabyte only as a blob.
func whole(ctx context.Context, api *githubapi.Client, f *githubapi.RepositoryContent, in OneFile) (string, error) {
	switch {
	case f.GetSize() > maxRead:
		return "", fault.Invalid("path", "the file has %d bytes; the limit is %d", f.GetSize(), maxRead)
	case f.GetEncoding() == "none":
		content, err := blobOf(ctx, api, in.Owner, in.Repo, f)
		return string(content), err
	}
	s, err := f.GetContent()
	if err != nil {
		return "", odd()
	}
	return s, nil
}

func content(f *githubapi.RepositoryContent, s string, in OneFile) (*File, error) {
	out := &File{Path: clip.Text(f.GetPath(), maxLine), SHA: f.GetSHA(), Size: f.GetSize()}
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		out.Binary = true
		return out, nil
	}
	v, err := tool.Within(s, tool.Window{Offset: in.Offset, Limit: in.Limit, ByteOffset: in.ByteOffset}, maxContent)
	out.Content, out.From, out.Line, out.Lines = v.Text, v.From, v.Line, v.All
	out.NextOffset, out.NextByteOffset = v.NextOffset, v.NextByteOffset
	out.Truncated = v.From+len(v.Text) < len(s)
	return out, err
}
