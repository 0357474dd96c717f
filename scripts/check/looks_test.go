package check_test

import (
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLooks shows each state of the console, of the widget and of the shop (testdata/looks.mjs), and checks the rules
// for all of them: wide in light and dark, and narrow. If SCREENSHOT_DIR is set, it gets the pictures, including
// README's screenshot*.png.
func TestLooks(t *testing.T) {
	inBrowser(t, "looks.mjs")
	dir := os.Getenv("SCREENSHOT_DIR")
	if dir == "" {
		return
	}
	for _, name := range []string{"screenshot.png", "screenshot-plan.png", "screenshot-terminal.png"} {
		shrink(t, filepath.Join(dir, name))
	}
}

// shrink rewrites a picture with its 256 most frequent colours, which takes a third of the size and looks the same.
func shrink(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	whole, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	small := image.NewPaletted(whole.Bounds(), frequent(whole))
	draw.Draw(small, small.Rect, whole, small.Rect.Min, draw.Src)
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(out, small); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// frequent returns the 256 most frequent colours of the picture.
func frequent(of image.Image) color.Palette {
	count := map[color.Color]int{}
	for y := of.Bounds().Min.Y; y < of.Bounds().Max.Y; y++ {
		for x := of.Bounds().Min.X; x < of.Bounds().Max.X; x++ {
			count[of.At(x, y)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return cmp.Compare(count[b], count[a]) })
	return color.Palette(all[:min(len(all), 256)])
}
