package fakegithub

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"
)

// repository is a repository with its Git database.
type repository struct {
	id            int64
	owner, name   string
	description   string
	private       bool
	writers       []string // users who may write, in addition to the owner
	created       time.Time
	issues        []*issue // pull requests included; the number is the index, counted from 1
	blobs         map[string]string
	trees         map[string]map[string]file // by file path
	commits       map[string]*commit
	branches      map[string]string
	defaultBranch string
	checks        []*check
}

// file is a file in a tree.
type file struct{ blob, mode string }

// The modes of the Git database.
const (
	modeFile   = "100644"
	modeFolder = "040000"
	modeModule = "160000" // a submodule
)

type commit struct {
	sha, tree, message, author string
	parents                    []string
	at                         time.Time
}

// issue is an issue or a pull request.
type issue struct {
	id                int64
	number            int
	title, body       string
	state             string
	author            string
	labels, assignees []string
	created, updated  time.Time
	closed            *time.Time
	comments          []*comment
	pull              *pull // nil: an issue
	reviews           []*review
}

type pull struct{ head, base string }

type comment struct {
	id           int64
	author, body string
	created      time.Time
}

func (r *repository) full() string { return r.owner + "/" + r.name }

func (r *repository) writable(login string) bool {
	return strings.EqualFold(r.owner, login) || slices.Contains(r.writers, login)
}

func (r *repository) visible(login string) bool { return !r.private || r.writable(login) }

// clone returns a copy of the repository. It does not copy the Git database, whose objects never change.
func (r *repository) clone() *repository {
	c := *r
	c.branches, c.issues = maps.Clone(r.branches), nil
	for _, i := range r.issues {
		is := *i
		is.comments = slices.Clone(i.comments)
		if i.pull != nil {
			is.pull = &pull{i.pull.head, i.pull.base}
		}
		c.issues = append(c.issues, &is)
	}
	return &c
}

// find returns a repository by its name, regardless of case, or nil.
func (s *Server) find(owner, name string) *repository {
	for _, r := range s.repos {
		if strings.EqualFold(r.owner, owner) && strings.EqualFold(r.name, name) {
			return r
		}
	}
	return nil
}

func (s *Server) id() int64 {
	s.last++
	return s.last
}

// now returns the time in whole seconds, as GitHub does.
func (s *Server) now() time.Time { return s.opts.Now().UTC().Truncate(time.Second) }

func (s *Server) newRepository(owner, name, description string, private bool) *repository {
	r := &repository{id: s.id(), owner: owner, name: name, description: description, private: private,
		created: s.now(), blobs: map[string]string{}, trees: map[string]map[string]file{},
		commits: map[string]*commit{}, branches: map[string]string{}, defaultBranch: "main"}
	s.repos = append(s.repos, r)
	return r
}

// hash returns the name of an object of the Git database: 40 hexadecimal digits, the same for the same content.
func hash(parts ...string) string {
	h := sha1.Sum([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(h[:])
}

func (r *repository) addBlob(content string) string {
	sha := hash("blob", content)
	r.blobs[sha] = content
	return sha
}

func (r *repository) addTree(files map[string]file) string {
	parts := []string{"tree"}
	for _, path := range sorted(files) {
		parts = append(parts, path, files[path].mode, files[path].blob)
	}
	sha := hash(parts...)
	r.trees[sha] = files
	return sha
}

func (r *repository) addCommit(c commit) *commit {
	c.sha = hash(slices.Concat([]string{"commit", c.tree, c.message, c.author, c.at.String()}, c.parents)...)
	r.commits[c.sha] = &c
	return &c
}

// at returns the commit of a branch, a commit's name or HEAD, or nil.
func (r *repository) at(ref string) *commit {
	if ref == "HEAD" || ref == "" {
		ref = r.defaultBranch
	}
	if sha, ok := r.branches[strings.TrimPrefix(ref, "refs/heads/")]; ok {
		ref = sha
	}
	return r.commits[ref]
}

// history returns a commit and its first-parent ancestors, newest first.
func (r *repository) history(sha string) (all []*commit) {
	for c := r.commits[sha]; c != nil; {
		all = append(all, c)
		if len(c.parents) == 0 {
			break
		}
		c = r.commits[c.parents[0]]
	}
	return all
}

// descends reports whether one commit equals another or descends from it.
func (r *repository) descends(sha, from string) bool {
	return slices.ContainsFunc(r.history(sha), func(c *commit) bool { return c.sha == from })
}

// A Seed is a repository that a server starts with.
type Seed struct {
	Owner, Name, Description string
	Private                  bool
	Writers                  []string          // users who may write, in addition to the owner
	Files                    map[string]string // the files of the first commit, on main
	Modes                    map[string]string // the modes other than 100644
	Issues                   []SeedIssue       // numbered from 1
	// branches other than main; each has one more commit, with a file of its own name
	Branches map[string]string
	Pulls    []SeedPull // numbered after the issues
}

// SeedPull is a pull request of a Seed.
type SeedPull struct{ Author, Title, Body, Head, Base string }

// SeedIssue is an issue of a Seed.
type SeedIssue struct {
	Author, Title, Body string
	Labels              []string
	Comments            []string // comments, by the same author
}

// Add adds a repository.
func (s *Server) Add(seed Seed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.newRepository(seed.Owner, seed.Name, seed.Description, seed.Private)
	r.writers = seed.Writers
	if len(seed.Files) > 0 {
		files := map[string]file{}
		for path, content := range seed.Files {
			files[path] = file{r.addBlob(content), cmp.Or(seed.Modes[path], modeFile)}
		}
		c := r.addCommit(commit{tree: r.addTree(files), message: "Begin", author: seed.Owner, at: s.now()})
		r.branches[r.defaultBranch] = c.sha
	}
	for _, branch := range sorted(seed.Branches) {
		on := r.at("HEAD")
		files := maps.Clone(r.trees[on.tree])
		files[branch] = file{r.addBlob(seed.Branches[branch]), modeFile}
		r.branches[branch] = r.addCommit(commit{tree: r.addTree(files), message: "Write " + branch, author: seed.Owner,
			parents: []string{on.sha}, at: s.now()}).sha
	}
	for _, in := range seed.Issues {
		i := s.addIssue(r, issue{title: in.Title, body: in.Body, author: in.Author, labels: in.Labels})
		for _, text := range in.Comments {
			s.addComment(i, in.Author, text)
		}
	}
	for _, in := range seed.Pulls {
		s.addIssue(r, issue{title: in.Title, body: in.Body, author: in.Author, pull: &pull{in.Head, in.Base}})
	}
}

// Push commits a file to the repository's default branch, as its owner does with git.
func (s *Server) Push(owner, name, path, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.find(owner, name)
	on := r.at("HEAD")
	files := maps.Clone(r.trees[on.tree])
	files[path] = file{r.addBlob(content), cmp.Or(files[path].mode, modeFile)}
	r.branches[r.defaultBranch] = r.addCommit(commit{tree: r.addTree(files), message: "Write " + path, author: owner,
		parents: []string{on.sha}, at: s.now()}).sha
}

func (s *Server) addIssue(r *repository, i issue) *issue {
	i.id, i.number, i.state, i.created = s.id(), len(r.issues)+1, "open", s.now()
	i.updated = i.created
	r.issues = append(r.issues, &i)
	return &i
}

func (s *Server) addComment(i *issue, author, body string) *comment {
	c := &comment{id: s.id(), author: author, body: body, created: s.now()}
	i.comments, i.updated = append(i.comments, c), c.created
	return c
}
