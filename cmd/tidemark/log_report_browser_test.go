//go:build browser

package main

import (
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"tidemark/test/golden"
)

// TestLogReportInBrowser opens a report in headless Chromium as on a desktop and on a phone, light and dark: each
// picture must have something on it, and dark must be darker. TIDEMARK_PICTURES names a folder that gets the pictures,
// for a person to look at.
func TestLogReportInBrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	out := os.Getenv("TIDEMARK_PICTURES")
	if out == "" {
		out = t.TempDir()
	}
	page := filepath.Join(out, "report.html")
	_, errs, status := call(t, "", "log", "report", "-o", page,
		golden.Load(t, "03-out-of-order").TreePath(t, golden.Dir0),
		golden.Load(t, "10-crash-flip-middle-segment").TreePath(t, golden.Before))
	if status != 0 {
		t.Fatal(errs)
	}
	for _, width := range []int{1280, 390} {
		light := brightness(t, shot(t, browser, page, out, width, "light"))
		dark := brightness(t, shot(t, browser, page, out, width, "dark"))
		if light < 0.75 || dark > 0.35 {
			t.Errorf("width %d: brightness %.2f light, %.2f dark", width, light, dark)
		}
	}
}

// shot takes a picture of the page.
func shot(t *testing.T, browser, page, out string, width int, mode string) image.Image {
	t.Helper()
	name := filepath.Join(out, "report-"+strconv.Itoa(width)+"-"+mode+".png")
	args := []string{
		"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(),
		"--window-size=" + strconv.Itoa(width) + ",2000", "--screenshot=" + name,
	}
	if mode == "dark" {
		args = append(args, "--force-dark-mode", "--blink-settings=preferredColorScheme=0")
	}
	if text, err := exec.Command(browser, append(args, "file://"+page)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return picture
}

// brightness is the mean over the picture, from 0 to 1. A picture of few colours fails the test: it shows nothing.
func brightness(t *testing.T, picture image.Image) float64 {
	t.Helper()
	colours, sum, n := map[[3]uint32]bool{}, 0.0, 0.0
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y += 3 {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x += 3 {
			r, g, b, _ := picture.At(x, y).RGBA()
			colours[[3]uint32{r, g, b}] = true
			sum += float64(r+g+b) / (3 * 0xffff)
			n++
		}
	}
	if len(colours) < 50 {
		t.Errorf("only %d colours", len(colours))
	}
	return sum / n
}
