package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/gcsserver"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// filed is a deployment with a store of files.
type filed struct {
	*timed
	names func() []string // of the stored objects

	mu   sync.Mutex
	read []string // bytes of files that the model got
}

// onFileStores runs a test on the embedded store with its folder, and on Firestore with a bucket of Cloud Storage.
func onFileStores(t *testing.T, test func(t *testing.T, w *filed), settings ...string) {
	settings = append(settings, testkit.Unlimited...)
	onTimedStores(t, func(t *testing.T, open func(settings ...string) *timed) {
		w := &filed{}
		if strings.HasSuffix(t.Name(), "firestore") {
			server := gcsserver.Start(t)
			w.names = func() []string { return server.Objects("files") }
			w.timed = open(append(settings, "FILES_BUCKET="+server.Bucket("files"),
				"STORAGE_EMULATOR_HOST="+strings.TrimPrefix(server.URL, "http://"))...)
		} else {
			w.timed = open(settings...)
			w.names = func() (names []string) {
				entries, err := os.ReadDir(filepath.Join(w.App.Config.DataDir, "files"))
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					names = append(names, e.Name())
				}
				return names
			}
		}
		w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
			var content struct {
				Parts []struct{ InlineData struct{ Data []byte } }
			}
			for _, raw := range r.Raw {
				if err := json.Unmarshal(raw, &content); err != nil {
					t.Error(err)
				}
				for _, p := range content.Parts {
					if len(p.InlineData.Data) > 0 {
						w.mu.Lock()
						w.read = append(w.read, string(p.InlineData.Data))
						w.mu.Unlock()
					}
				}
			}
			return fakegemini.Turn{Text: "Read."}
		})
		test(t, w)
	})
}

// form is a body with one file.
func form(t *testing.T, field, name string, data []byte) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile(field, name)
	if err == nil {
		_, err = part.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// uploaded is the answer to an upload.
type uploaded struct {
	FileID, Name, Type, SHA256 string
	Size                       int
	UnusedUntil                time.Time
}

// upload uploads a file as the user.
func (w *filed) upload(t *testing.T, uid, name string, data []byte) (u uploaded) {
	t.Helper()
	body, kind := form(t, "file", name, data)
	a := w.as(uid, "/api/agent/files", body, "Content-Type", kind)
	if err := json.Unmarshal(a.Body, &u); err != nil || a.HTTP != http.StatusOK || u.FileID == "" {
		t.Fatalf("upload: %d %s", a.HTTP, a.Body)
	}
	return u
}

// attach starts a run with the file.
func (w *filed) attach(uid, fileID string) testkit.Answer {
	return w.as(uid, runPath, fmt.Sprintf(`{"prompt":"read it","attachments":[{"fileId":%q}]}`, fileID))
}

// get sends a GET or DELETE as the user.
func (w *filed) get(t *testing.T, uid, method, path string) testkit.Answer {
	t.Helper()
	a, err := testkit.Connect(nil, w.Base, w.signIn(uid))(t.Context(), method, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// sweep sweeps all shards.
func (w *filed) sweep(t *testing.T) {
	t.Helper()
	for shard := range int64(document.Shards) {
		if _, err := w.App.API.Records.SweepFiles(t.Context(), shard); err != nil {
			t.Fatal(err)
		}
	}
}

// wants checks the number of stored objects.
func (w *filed) wants(t *testing.T, n int, when string) {
	t.Helper()
	if names := w.names(); len(names) != n {
		t.Errorf("%s: %d objects are stored, want %d: %q", when, len(names), n, names)
	}
}

// TestFilesDeletedWithConversation uploads a file that is larger than a prompt may bring, and follows it: equal bytes
// are stored once, encrypted; another user has no use for the ID; two conversations read it, and the second one keeps
// it when the first one is deleted.
func TestFilesDeletedWithConversation(t *testing.T) {
	realpart.Unraced(t)
	onFileStores(t, func(t *testing.T, w *filed) {
		data := bytes.Repeat([]byte("The offer costs 1,200 euros.\n"), 3<<20/29)
		u := w.upload(t, "ana", "offer.txt", data)
		again := w.upload(t, "ana", "the same.txt", data)
		other := w.upload(t, "ben", "offer.txt", data)
		if u.FileID != again.FileID || again.Name != "the same.txt" || u.FileID == other.FileID ||
			u.Size != len(data) || u.Type != "text/plain" || u.UnusedUntil.Sub(w.now()) < attachment.Unused-time.Hour {
			t.Errorf("uploads: %+v, %+v, %+v", u, again, other)
		}
		w.wants(t, 2, "after three uploads")
		for _, fileID := range []string{u.FileID, strings.Repeat("a", 26)} {
			a := w.attach("ben", fileID)
			if a.HTTP != http.StatusBadRequest || a.Error.Field != "attachments[0].fileId" {
				t.Errorf("a file of another user, or of nobody: %d %s", a.HTTP, a.Body)
			}
		}
		first, second := w.attach("ana", u.FileID), w.attach("ana", u.FileID)
		w.done(first)
		w.done(second)
		if len(w.read) != 2 || w.read[0] != string(data) || w.read[1] != string(data) {
			t.Errorf("the model got %d files", len(w.read))
		}
		holds(t, "the run", string(w.get(t, "ana", "GET", "/api/agent/runs/"+first.RunID).Body), `"fileId":"`+u.FileID,
			`"name":"the same.txt"`)
		w.done(w.get(t, "ana", "DELETE", "/api/agent/threads/"+first.ThreadID))
		w.sweep(t)
		w.wants(t, 2, "after the first conversation")
		path := "/api/agent/runs/" + second.RunID + "/attachments/1"
		if a := w.get(t, "ana", "GET", path); a.HTTP != http.StatusOK || !bytes.Equal(a.Body, data) {
			t.Errorf("the second conversation has %d with %d bytes", a.HTTP, len(a.Body))
		}
		if a := w.get(t, "ben", "GET", path); a.HTTP != http.StatusNotFound {
			t.Errorf("another user gets %d", a.HTTP)
		}
		w.done(w.get(t, "ana", "DELETE", "/api/agent/threads/"+second.ThreadID))
		w.sweep(t)
		w.wants(t, 1, "after both conversations")
		if a := w.attach("ana", u.FileID); a.HTTP != http.StatusBadRequest {
			t.Errorf("a deleted file is attached: %d", a.HTTP)
		}
		w.tick(attachment.Unused - time.Hour)
		w.sweep(t)
		w.wants(t, 1, "before the time of an unused file is over")
		w.tick(2 * time.Hour)
		w.sweep(t)
		w.wants(t, 0, "after that time")
	})
}

// TestFilesDeletedWithUser has files of a deleted user, and of a conversation that is kept too long.
func TestFilesDeletedWithUser(t *testing.T) {
	onFileStores(t, func(t *testing.T, w *filed) {
		w.App.API.Records.Retention = w.App.Config.Retention
		w.done(w.attach("ana", w.upload(t, "ana", "kept.txt", []byte("in a run")).FileID))
		w.upload(t, "ana", "unused.txt", []byte("in no run"))
		w.done(w.attach("ben", w.upload(t, "ben", "kept.txt", []byte("in a run")).FileID))
		w.wants(t, 3, "at first")
		var exported []string
		err := w.App.API.Records.Each(t.Context(), "ana", func(i records.Item) error {
			if f, is := i.Data.(*attachment.File); is {
				exported = append(exported, string(f.Data))
			}
			return nil
		})
		if err != nil || fmt.Sprint(exported) != "[in no run in a run]" {
			t.Errorf("the export has %q, %v", exported, err)
		}
		if _, err := w.App.Offboard().Delete(t.Context(), "ana"); err != nil {
			t.Fatal(err)
		}
		w.sweep(t)
		w.wants(t, 1, "after the deletion of ana")
		if body, kind := form(t, "file", "a.txt", []byte("late")); w.as("ana", "/api/agent/files", body, "Content-Type",
			kind).HTTP != http.StatusUnauthorized {
			t.Error("a deleted user uploads a file")
		}
		w.tick(31 * 24 * time.Hour)
		for shard := range int64(document.Shards) {
			if _, err := w.App.API.Records.ExpireThreads(t.Context(), shard); err != nil {
				t.Fatal(err)
			}
		}
		w.sweep(t)
		w.wants(t, 0, "after the retention")
	}, "RETENTION=30")
}

// TestUploadsAtOnce uploads the same bytes from several places, attaches them and deletes the conversations, all at
// once. A conversation that is kept has the file, and nothing else is left.
func TestUploadsAtOnce(t *testing.T) {
	onFileStores(t, func(t *testing.T, w *filed) {
		data, token := []byte("the same bytes"), w.signIn("ana")
		body, kind := form(t, "file", "a.txt", data)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var kept []string
		for n := range 6 {
			wg.Go(func() {
				c := testkit.Connect(nil, w.Base, token)
				for try := 0; ; try++ {
					a, err := c(t.Context(), "POST", "/api/agent/files", body, "Content-Type", kind)
					var u uploaded
					if err != nil || a.HTTP != http.StatusOK || json.Unmarshal(a.Body, &u) != nil {
						t.Errorf("upload: %v %s", err, a.Body)
						return
					}
					a, err = c(t.Context(), "POST", runPath, fmt.Sprintf(
						`{"prompt":"read it","attachments":[{"fileId":%q}]}`, u.FileID))
					if err == nil && a.HTTP == http.StatusBadRequest && try < 20 {
						continue // another conversation has used the upload and taken the file with it
					}
					if err != nil || a.HTTP != http.StatusOK {
						t.Errorf("run: %v %s", err, a.Body)
						return
					}
					if n%2 == 0 {
						a, err = c(t.Context(), "DELETE", "/api/agent/threads/"+a.ThreadID, nil)
						if err != nil || a.HTTP >= 300 {
							t.Errorf("delete: %v %s", err, a.Body)
						}
						return
					}
					mu.Lock()
					kept = append(kept, a.RunID)
					mu.Unlock()
					return
				}
			})
		}
		wg.Wait()
		w.tick(attachment.Unfinished + time.Hour)
		w.sweep(t)
		w.wants(t, 1, "at the end")
		for _, runID := range kept {
			a := w.get(t, "ana", "GET", "/api/agent/runs/"+runID+"/attachments/1")
			if a.HTTP != http.StatusOK || !bytes.Equal(a.Body, data) {
				t.Errorf("a kept conversation has lost its file: %d %s", a.HTTP, a.Body)
			}
		}
	})
}

// TestUploadsRefused has bodies that are no files, and too many files.
func TestUploadsRefused(t *testing.T) {
	realpart.Unraced(t)
	onFileStores(t, func(t *testing.T, w *filed) {
		large := bytes.Repeat([]byte("x"), attachment.MaxUpload+1)
		for what, c := range map[string]struct {
			field, name string
			data        []byte
			want        string
		}{
			"another field": {"upload", "a.txt", []byte("a"), "file"},
			"no name":       {"file", "", []byte("a"), "file"},
			"a ZIP archive": {"file", "a.txt", []byte("PK\x03\x04"), "file/data"},
			"nothing":       {"file", "a.txt", nil, "file/data"},
			"too large":     {"file", "a.txt", large, "file"},
		} {
			body, kind := form(t, c.field, c.name, c.data)
			a := w.as("ana", "/api/agent/files", body, "Content-Type", kind)
			if a.HTTP != http.StatusBadRequest || a.Error.Field != c.want {
				t.Errorf("%s: %d %s; want a.HTTP %v, a.Error.Field %v",
					what, a.HTTP, a.Body, http.StatusBadRequest, c.want)
			}
		}
		body, kind := form(t, "file", "a.txt", []byte("a"))
		for _, c := range []struct {
			body, kind string
			want       int
		}{
			{body, "application/json", http.StatusUnsupportedMediaType},
			{body, "multipart/form-data", http.StatusUnsupportedMediaType},
			{body[:len(body)-8], kind, http.StatusBadRequest},
			{"", kind, http.StatusBadRequest},
			{strings.Repeat("x", 2<<20), kind, http.StatusRequestEntityTooLarge},
		} {
			if a := w.as("ana", "/api/agent/files", c.body, "Content-Type", c.kind); a.HTTP != c.want {
				t.Errorf("%d; want %d: %s", a.HTTP, c.want, a.Body)
			}
		}
		for n := range attachment.MaxUnused {
			w.upload(t, "ana", "a.txt", fmt.Appendf(nil, "file %d", n))
		}
		body, kind = form(t, "file", "a.txt", []byte("one more"))
		a := w.as("ana", "/api/agent/files", body, "Content-Type", kind)
		if a.HTTP != http.StatusTooManyRequests || a.Error.Code != "too_many" {
			t.Errorf("one file too many: %d %s", a.HTTP, a.Body)
		}
		w.upload(t, "ana", "b.txt", []byte("file 1")) // is there already
		w.wants(t, attachment.MaxUnused, "at the end")
		full := bytes.Repeat([]byte("y"), attachment.MaxUpload)
		a = w.as("ben", runPath, fmt.Sprintf(`{"prompt":"x","attachments":[{"fileId":%q},{"name":"b","data":"eA=="}]}`,
			w.upload(t, "ben", "full.txt", full).FileID))
		if a.HTTP != http.StatusBadRequest || a.Error.Field != "attachments[1]" {
			t.Errorf("more than a request has: %d %s", a.HTTP, a.Body)
		}
	})
}

// TestFilesWithoutBucket has a deployment without a bucket: uploads and files of pages are refused, and prompts bring
// their files as before.
func TestFilesWithoutBucket(t *testing.T) {
	w := deploy(t)
	w.App.API.Records.Files = nil
	body, kind := form(t, "file", "a.txt", []byte("a"))
	c, err := w.As(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	a, err := c(t.Context(), "POST", "/api/agent/files", body, "Content-Type", kind)
	if err != nil || a.HTTP != http.StatusNotImplemented || a.Error.Class != "PolicyError" {
		t.Errorf("%d %s, %v; want a.HTTP %v, a.Error.Class “PolicyError”",
			a.HTTP, a.Body, err, http.StatusNotImplemented)
	}
	if a := w.call("POST", runPath, `{"prompt":"x","attachments":[{"name":"a.txt","data":"YQ=="}]}`); a.HTTP != 200 {
		t.Errorf("%d %s; want a.HTTP 200", a.HTTP, a.Body)
	}
	a = w.chat(chatPath, `{"message":"x","attachments":[{"name":"a.txt","data":"YQ=="}]}`)
	if a.HTTP != http.StatusNotImplemented || a.Error.Code != "not_bound" {
		t.Errorf("a page: %d %s", a.HTTP, a.Body)
	}
}

// TestAnswerWithPicture has a picture beside the words of an answer. The summary and the message say so, and a
// second run in the conversation has the same answer.
func TestAnswerWithPicture(t *testing.T) {
	w := deploy(t)
	w.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Body: `{"candidates":[{"content":{"role":"model","parts":[{"text":"Here."},` +
			`{"inlineData":{"mimeType":"image/png","data":"AA=="}}]},"finishReason":"STOP"}]}`}
	})
	const want = "Here.\n\n[The answer also had a picture or another file, which cannot be shown here.]"
	r := w.call("POST", "/api/agent/run", `{"prompt":"draw it"}`)
	if r.Summary != want {
		t.Errorf("the summary is %q; want %q", r.Summary, want)
	}
	got := string(w.call("GET", "/api/agent/threads/"+r.ThreadID+"/messages", "").Body)
	if !strings.Contains(got, "had a picture") {
		t.Errorf("the messages are %s; want the line about the picture", got)
	}
	if r = w.call("POST", "/api/agent/run", `{"prompt":"again","threadId":"`+r.ThreadID+`"}`); r.Summary != want {
		t.Errorf("%s; want the same summary in the conversation's second run", r.Body)
	}
}
