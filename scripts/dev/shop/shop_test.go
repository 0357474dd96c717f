package shop

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fields"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func get(s *Shop, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestPagePolicy(t *testing.T) {
	s := New()
	kinds := map[string]string{"/shop": "text/html; charset=utf-8", "/shop/shop.js": "text/javascript; charset=utf-8",
		"/shop/style.css": "text/css; charset=utf-8"}
	for _, p := range products {
		kinds["/shop/pictures/"+p.ID+".svg"] = "image/svg+xml"
	}
	for path, kind := range kinds {
		w := get(s, path)
		csp := w.Header().Get("Content-Security-Policy")
		if w.Code != 200 || w.Body.Len() == 0 || w.Header().Get("Content-Type") != kind ||
			!strings.Contains(csp, "script-src 'self';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %d, %s, %s", path, w.Code, w.Header().Get("Content-Type"), csp)
		}
	}
	for _, path := range []string{"/shop/nothing.js", "/shop/index.html", "/shop/../shop.go", "/shop/pictures"} {
		if w := get(s, path); w.Code == 200 {
			t.Errorf("%s is served", path)
		}
	}
	if w := get(s, "/shop/"); w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != "/shop" {
		t.Errorf("/shop/: %d to %q", w.Code, w.Header().Get("Location"))
	}
}

// TestFilesWithoutInlineCode checks that the files have no inline code, which the policy would block silently, and
// nothing from another origin.
func TestFilesWithoutInlineCode(t *testing.T) {
	bad := regexp.MustCompile(
		`(?i)<script(?:\s[^>]*)?>[^<]|\son[a-z]+\s*=\s*"|\sstyle\s*=|<style|javascript:|innerHTML|\beval\(|https?://`)
	files := os.DirFS("site")
	n := 0
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		data, err := fs.ReadFile(files, path)
		if m := bad.Find([]byte(strings.ReplaceAll(string(data), `xmlns="http://www.w3.org/2000/svg"`, ""))); m != nil {
			t.Errorf("%s holds %q", path, m)
		}
		return err
	})
	if err != nil || n < len(products)+5 {
		t.Errorf("%d files: %v", n, err)
	}
}

func TestSearchWithoutScripts(t *testing.T) {
	body := get(New(), `/shop?q=blue+mug"><script>`).Body.String()
	if strings.Contains(body, `"><script>`) || !strings.Contains(body, ">0 products<") {
		t.Error("the query is not escaped, or matches a product")
	}
	body = get(New(), "/shop?q=blue+mug").Body.String()
	if strings.Count(body, "<li class=\"product\"") != len(products) ||
		strings.Count(body, " hidden>") != len(products)-1 || !strings.Contains(body, ">1 product<") {
		t.Error("want one visible product")
	}
	if w := get(New(), "/shop?q="+strings.Repeat("x", 201)); w.Code != http.StatusBadRequest {
		t.Errorf("a long query: %d", w.Code)
	}
}

func TestSearch(t *testing.T) {
	s := New()
	for query, want := range map[string]string{
		"blue mug": "mug-blue", "Mugs": "mug-blue mug-red mug-green mug-white-large mug-travel",
		"teapots": "teapot-blue", "blue": "mug-blue teapot-blue",
		"soup": "bowl-green", "green": "mug-green bowl-green", "unicorn": "",
	} {
		out, err := s.SearchProducts(t.Context(), tool.Call{}, SearchIn{Query: query})
		var ids []string
		for _, p := range out.Products {
			ids = append(ids, p.ID)
		}
		if got := strings.Join(ids, " "); err != nil || got != want || out.Total != len(ids) {
			t.Errorf("%q finds %q (%d), %v; want %q", query, got, out.Total, err, want)
		}
	}
	if out, err := s.SearchProducts(t.Context(), tool.Call{}, SearchIn{Query: "mug", Limit: 2}); err != nil ||
		len(out.Products) != 2 || out.Total != 5 {
		t.Errorf("two of five: %v, %v", out, err)
	}
	if raw, err := json.Marshal(SearchOut{Products: []Found{}}); err != nil ||
		string(raw) != `{"products":[],"total":0}` {
		t.Errorf("nothing is %s, %v", raw, err)
	}
}

func TestRatings(t *testing.T) {
	s := New()
	for _, r := range []struct {
		uid   string
		stars int
	}{{"ana", 2}, {"bob", 4}, {"ana", 5}} {
		if _, err := s.SubmitRating(t.Context(), tool.Call{UID: r.uid},
			RatingIn{ProductID: "mug-blue", Stars: r.stars}); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := s.GetProduct(t.Context(), tool.Call{}, GetIn{"mug-blue"}); err != nil || p.Stars != 4.5 ||
		p.Price != "€12.00" {
		t.Errorf("got %v, %v", p, err)
	}
	if body := get(s, "/shop").Body.String(); strings.Count(body, "4.5 of 5 stars, 2 ratings") != 1 {
		t.Error("the rating is not on the page")
	}
	w := get(s, "/shop/ratings")
	var all map[string]string
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil || len(all) != len(products) ||
		all["mug-blue"] != "4.5 of 5 stars, 2 ratings" || all["mug-red"] != "not rated yet" ||
		!strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the ratings are %s, %v", w.Body, err)
	}
}

func TestActionsRefused(t *testing.T) {
	s := New()
	_, noProduct := s.GetProduct(t.Context(), tool.Call{}, GetIn{"x"})
	_, noRated := s.SubmitRating(t.Context(), tool.Call{}, RatingIn{ProductID: "x", Stars: 5})
	_, noStars := s.SubmitRating(t.Context(), tool.Call{}, RatingIn{ProductID: "mug-blue", Stars: 6})
	_, tooMany := s.SearchProducts(t.Context(), tool.Call{}, SearchIn{Query: "mug", Limit: 51})
	for field, err := range map[string]error{"id": noProduct, "productId": noRated, "stars": noStars,
		"limit": tooMany} {
		fields.Check(t, *fault.As(err), fault.Error{Class: fault.Validation, Field: field})
	}
}
