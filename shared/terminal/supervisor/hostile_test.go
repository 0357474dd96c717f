package supervisor_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// planted maps paths in the home directory and in the working directory to configurations that make a program write the
// file TOLD.
var planted = map[string]string{
	".bash_env":                          "TELL",
	".rpmmacros":                         "%_dbpath %(TELL)",
	".dpkg.cfg":                          "pre-invoke=TELL\nstatus-logger=TELL\nlog=TOLD",
	".toprc":                             "pipe\tx\tTELL\n",
	".config/procps/toprc":               "pipe\tx\tTELL\n",
	".gitconfig":                         "[core]\n\tpager = TELL\n\tfsmonitor = TELL\n[alias]\n\tversion = !TELL\n",
	".config/git/config":                 "[core]\n\tpager = TELL\n[trace2]\n\tnormalTarget = TOLD\n",
	".git/config":                        "[core]\n\tpager = TELL\n\tfsmonitor = TELL\n\tsshCommand = TELL\n",
	".git/HEAD":                          "ref: refs/heads/main\n",
	".docker/config.json":                `{"credsStore":"told","cliPluginsExtraDirs":["PLUGINS"]}`,
	".docker/cli-plugins/docker-version": "#!/bin/sh\nTELL\n",
	".hotspotrc":                         "+UnlockDiagnosticVMOptions\nOnOutOfMemoryError=TELL\nLogFile=TOLD\n",
	".hotspot_compiler":                  "print\n",
	"php.ini":                            "auto_prepend_file=told.php\nerror_log=TOLD\nextension=told.so\n",
	".user.ini":                          "auto_prepend_file=told.php\n",
	"told.php":                           "<?php file_put_contents('TOLD', 'x');",
	"usercustomize.py":                   "open('TOLD', 'w')",
	"sitecustomize.py":                   "open('TOLD', 'w')",
	".pythonrc.py":                       "open('TOLD', 'w')",
	".perlrc":                            "system('TELL')",
	"told.rb":                            "File.write('TOLD', 'x')",
	"told.js":                            "require('fs').writeFileSync('TOLD', 'x')",
	"package.json":                       `{"type":"module","imports":{"#x":"./told.js"}}`,
	"node.config.json":                   `{"nodeOptions":{"require":["./told.js"]}}`,
	".npmrc":                             "node-options=--require=./told.js\n",
	".tool-versions":                     "nodejs path:./bin\n",
	"nginx.conf":                         "error_log TOLD;\n",
	".lesskey":                           "#env\nLESSOPEN=|TELL\n",
	".dir_colors":                        "EXEC 01;31\n",
	".systemd/user.conf":                 "x",
	"bin/ls":                             "#!/bin/sh\nTELL\n",
	"bin/cat":                            "#!/bin/sh\nTELL\n",
	"bin/pager":                          "#!/bin/sh\nTELL\n",
	"bin/less":                           "#!/bin/sh\nTELL\n",
	"grep":                               "#!/bin/sh\nTELL\n",
	"f":                                  "x\n",
}

// exported are environment variables that do the same.
var exported = []string{"ENV=HOME/.bash_env", "BASH_ENV=HOME/.bash_env", "PAGER=TELL", "GIT_PAGER=TELL",
	"SYSTEMD_PAGER=TELL", "SYSTEMD_LESS=", "DPKG_PAGER=TELL", "MANPAGER=TELL", "LESSOPEN=|TELL", "GIT_TRACE=TOLD",
	"GIT_EXEC_PATH=HOME/bin", "GIT_CONFIG_GLOBAL=HOME/.gitconfig", "DOCKER_CONFIG=HOME/.docker", "PHPRC=HOME",
	"PHP_INI_SCAN_DIR=HOME", "PYTHONPATH=HOME", "PYTHONSTARTUP=HOME/.pythonrc.py", "PYTHONUSERBASE=HOME",
	"PERL5LIB=HOME", "PERL5OPT=-Mtold", "RUBYOPT=-rHOME/told.rb", "RUBYLIB=HOME", "NODE_OPTIONS=--require=HOME/told.js",
	"JAVA_TOOL_OPTIONS=-Xlog:all:file=TOLD", "JDK_JAVA_OPTIONS=-Xlog:all:file=TOLD", "XDG_CONFIG_HOME=HOME/.config",
	"LOCPATH=HOME", "LC_ALL=told", "LS_COLORS=*=01", "GREP_OPTIONS=-f/etc/passwd", "PS_FORMAT=pid,environ",
	"TOPRC=HOME/.toprc", "TERMINFO=HOME", "TZDIR=HOME", "GCONV_PATH=HOME", "MALLOC_TRACE=TOLD"}

// tree returns the names, modes, sizes and times of all files below a folder, except the keeper's.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		switch {
		case err != nil:
			return err
		case entry.Name() == ".countersign":
			return fs.SkipDir
		case path != dir: // the keeper makes its folder there
			fmt.Fprintln(&b, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestConfigurationsOfLookers runs a command of each program that may run without approval, with every configuration
// that could make it run something else. Nothing else runs, no file changes, and no command waits.
func TestConfigurationsOfLookers(t *testing.T) {
	t.Parallel()
	commands, err := os.ReadFile("../shell/testdata/lookers.txt")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	fill := func(name, text string) string {
		told := filepath.Join(home, "told-by-"+strings.NewReplacer("/", "-", "=", "-").Replace(name))
		return strings.NewReplacer("HOME", home, "TELL", "touch "+told, "TOLD", told, "PLUGINS",
			home+"/.docker/cli-plugins").Replace(text)
	}
	acted := func() (told []string) {
		told, _ = filepath.Glob(filepath.Join(home, "told-by-*")) // the pattern is valid
		for _, file := range told {
			_ = os.Remove(file)
		}
		return told
	}
	for _, dir := range []string{home, filepath.Join(home, "work")} {
		for name, text := range planted {
			file := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700),
				os.WriteFile(file, []byte(fill(name, text)), 0o700)); err != nil { // #nosec G306 -- some are programs
				t.Fatal(err)
			}
		}
	}
	var export strings.Builder
	for _, v := range exported {
		name, value, _ := strings.Cut(v, "=")
		fmt.Fprintf(&export, "export %s=%s\n", name, shell.Quote([]string{fill(name, value)}))
	}
	k, err := supervisor.Open(t.Context(), sshd.Start(t, sshd.Options{Home: home}).Dial())
	if err != nil {
		t.Fatal(err)
	}
	run := func(s supervisor.Start) string {
		t.Helper()
		var out strings.Builder
		s.Terminal, s.Grammar, s.Limit, s.Cwd = "one", shell.Bash, await.Most, filepath.Join(home, "work")
		if res, err := k.Start(t.Context(), s, &out); err != nil || res.TimedOut || res.Asked {
			t.Fatalf("it waits, or is not begun: %+v, %v: %s", res, err, out.String())
		}
		return out.String()
	}
	run(supervisor.Start{ID: rand.Text(), Command: export.String() + "export PATH=" + home + "/bin:$PATH"})
	if run(supervisor.Start{ID: rand.Text(), Command: "ls"}); len(acted()) == 0 {
		t.Error("what was planted does nothing, so that the test proves nothing")
	}
	was := tree(t, home)
	var out string
	for some := range slices.Chunk(slices.Collect(strings.Lines(string(commands))), 50) {
		out += run(supervisor.Start{ID: rand.Text(), Command: strings.Join(some, ""), Plain: true})
	}
	if now := tree(t, home); now != was {
		t.Errorf("it has changed files: %s\nwant %s", now, was)
	}
	if told := acted(); len(told) > 0 {
		t.Errorf("configurations have acted: %q", told)
	}
	if !strings.Contains(out, "x\r\n") || strings.Contains(out, "-Mtold") {
		t.Errorf("it printed %s", out)
	}
	if !strings.Contains(out, "\nPYTHONDONTWRITEBYTECODE=1\r\n") {
		t.Error("programs in Python, such as pip, would write their compiled modules")
	}
}
