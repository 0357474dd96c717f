package countersign

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/tools/skill"
)

// Skills are where an agent's skills come from: [SkillDir] or [SkillFS]. A skill is a folder in the open format
// (https://agentskills.io): SKILL.md, whose front matter has a name and a description, and whose text is guidance for
// one kind of task.
//
// The model finds names and descriptions in its instructions, up to 100 skills and 16 KiB. It reads a text, up to 64
// KiB, by the tool activate_skill and a skill's files by read_skill_file; both calls are actions like all others. The
// instructions and the policy take precedence over skills. Nothing in a skill runs by itself.
//
// A skill approves nothing: allowed-tools only narrows. Once the skill is active, the run's model can call only those
// tools until it answers, and the policy decides about each call as before. Names that are not tools of the agent
// (Read, WebFetch, mcp__x) and entries with a condition (Bash(git:*)) are ignored. If no tool of the agent is left in
// the list, the skill does not narrow: the model keeps the agent's tools.
//
// A user invokes a skill by its name at the beginning of a prompt: "/release 1.2". Its text is then added to the end of
// that run's instructions, and allowed-tools narrows that run. Only the prompt counts as the user's words, never the
// skill's text. A name that is not a skill's is ordinary text.
//
// In the text, $ARGUMENTS is replaced by the words after the name, $ARGUMENTS[0] for its first word, and $name for a
// word that the front matter names in arguments. $1 is the first word; in a text that has $0 or $ARGUMENTS[n] it is the
// second. Quotes hold the spaces of a word together. Arguments without a placeholder follow the text. A placeholder
// without an argument stays.
//
// The model does not see a skill with disable-model-invocation: true. Users cannot invoke a skill with user-invocable:
// false. [Agent.UserSkills] returns what a program can offer its users, with argument-hint.
//
// [New] skips a skill that it cannot use and loads the others. It fails if no skill of a source is usable. Skipped
// skills and departures from the format are warnings in [Options].Logger: an unknown key, a name that is not the
// folder's, an ignored entry of allowed-tools.
type Skills struct{ source skill.Source }

// SkillDir returns the skills of a folder: its own, or those of the folders in it, at most four deep. Links do not lead
// out of it. The path is relative to the working directory.
func SkillDir(path string) Skills { return Skills{skill.Dir(path)} }

// SkillFS returns the skills of a file system, such as an embed.FS. Links in it are not followed.
func SkillFS(fsys fs.FS) Skills { return Skills{skill.FS(fsys)} }

// SkillActivated reports that the model got a skill's text. It follows the call's [ToolFinished]. If the prompt
// invokes the skill, it is the run's first event.
type SkillActivated struct {
	Seq      int64  // the number of the call's stored outcome; 0 if the user invoked the skill
	ActionID string // the call's action ID; empty if the user invoked the skill
	Skill    string
}

// UserSkill is a skill that a user can invoke: "/name arguments" at the beginning of a prompt.
type UserSkill struct {
	Name         string
	Description  string
	ArgumentHint string // text for people that describes the arguments; empty if the skill has none
}

// UserSkills returns the skills that a user can invoke, sorted by their names.
func (a *Agent) UserSkills() []UserSkill {
	var all []UserSkill
	for _, s := range a.core.skills.Invocable() {
		description, _ := visible.Line(strings.Join(strings.Fields(s.Description), " "))
		hint, _ := visible.Line(s.ArgumentHint)
		all = append(all, UserSkill{s.Name, description, hint})
	}
	return all
}

func (*SkillActivated) event() {}

// activated returns the event that follows a call that activated a skill, or nil.
func activated(e Event) *SkillActivated {
	f, ok := e.(*ToolFinished)
	if !ok || f.Err != nil {
		return nil
	}
	if name, _ := skill.Activated(f.Tool, f.Result); name != "" {
		return &SkillActivated{f.Seq, f.ActionID, name}
	}
	return nil
}

// setSkills reads the skills and adds their tools and their list to the agent.
func (c *core) setSkills() error {
	var sources []skill.Source
	for _, s := range c.options.Skills {
		sources = append(sources, s.source)
	}
	library, err := skill.Load(sources...)
	if err != nil {
		return wrongSkills(err)
	}
	library = library.For(c.tools)
	c.skills = library
	for _, w := range library.Warnings() {
		c.log.Warn("a skill has a problem", "reason", w.Error())
	}
	var wrong error
	tools := library.Tools()
	if t := library.InvokedFiles(c.promptOf); t != nil {
		tools = append(tools, t)
	}
	for _, t := range tools {
		if c.tools[t.Name] != nil {
			wrong = errors.Join(wrong,
				fault.Invalid("Skills", "the tool name %q is reserved for skills", t.Name))
		}
		c.tools[t.Name] = c.hooked(t)
	}
	c.catalogue = library.Catalogue()
	c.definition.Instructions = registry.Text(c.withSkills(c.options.Instructions))
	c.definition.Compression.Carry = skill.Carry
	return wrong
}

// wrongSkills returns the joined mistakes of skills as those of the option.
func wrongSkills(err error) error {
	if err == nil {
		return nil
	}
	var wrong []error
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		wrong = append(wrong, fault.Invalid("Skills", "%s", e.Error()))
	}
	return errors.Join(wrong...)
}

// withSkills appends the list of skills to instructions.
func (c *core) withSkills(instructions string) string {
	return strings.TrimSpace(strings.TrimSpace(instructions) + "\n\n" + c.catalogue)
}

// invoke adds the text of the skill that the prompt invokes to the instructions, and returns the skill's name. The name
// is empty if the prompt invokes none.
func (c *core) invoke(in *loop.Prompt) (string, error) {
	i := c.skills.Invoked(in.Text)
	in.Tools = c.offered(i)
	if i == nil {
		return "", nil
	}
	text, err := i.Text()
	in.Instructions = strings.TrimSpace(in.Instructions + "\n\n" + text)
	return i.Skill.Name, err
}

// offered returns the names of the tools that the model can call in a run with the invocation, which can be nil.
func (c *core) offered(i *skill.Invocation) []string {
	return slices.DeleteFunc(c.tools.Names(), func(name string) bool {
		if i == nil {
			return name == skill.ReadInvoked
		}
		return !i.Lets(c.tools[name])
	})
}

// promptOf returns the prompt of the call's run.
func (c *core) promptOf(ctx context.Context, call tool.Call) (string, error) {
	ex := c.loop.NewExecution(call.RunID, nil)
	if err := ex.LoadOwned(ctx, call.UID); err != nil {
		return "", err
	}
	return ex.State.Input.Prompt, nil
}
