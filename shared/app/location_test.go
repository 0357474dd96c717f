package app_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/jpeg"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestPictureLocationRemoved checks that neither the model nor the store gets the place in a picture's EXIF data, and
// that the run says so.
func TestPictureLocationRemoved(t *testing.T) {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	// EXIF data with a directory of one entry, which leads to a GPS directory with one value
	const exif = "Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x88\x25\x00\x04\x00\x00\x00\x01\x00\x00\x00\x1a" +
		"\x00\x00\x00\x00\x00\x01\x00\x1b\x00\x02\x00\x00\x00\x06\x00\x00\x00\x2c\x00\x00\x00\x00CANARY"
	picture := b.String()[:2] + "\xff\xe1\x00" + string(rune(len(exif)+2)) + exif + b.String()[2:]
	w := deploy(t)
	sent := ""
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		var last struct {
			Parts []struct{ InlineData struct{ Data []byte } }
		}
		if err := json.Unmarshal(r.Raw[len(r.Raw)-1], &last); err != nil {
			t.Error(err)
		}
		for _, p := range last.Parts {
			sent += string(p.InlineData.Data)
		}
		return fakegemini.Turn{Text: "A picture."}
	})
	a := w.call("POST", "/api/agent/run", `{"prompt":"what is it?","attachments":[{"name":"a.jpg","data":"`+
		base64.StdEncoding.EncodeToString([]byte(picture))+`"}]}`)
	holds(t, "the run", string(a.Body), `"locationRemoved":true`)
	kept := w.call("GET", "/api/agent/runs/"+a.RunID+"/attachments/1", "")
	if a.HTTP != http.StatusOK || len(sent) != len(picture) || strings.Contains(sent, "CANARY") ||
		string(kept.Body) != sent {
		t.Errorf("%d: the model got %q, the store has %q", a.HTTP, sent, kept.Body)
	}
}
