package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/detent-go/detent/trace"
)

// Live shows a source on a terminal until the user ends it or the context ends.
func Live(ctx context.Context, s Source, title string, interval time.Duration, in io.Reader, out io.Writer, color bool) error {
	m := newLive(s, title, interval, color)
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out))
	done, err := p.Run()
	if errors.Is(err, tea.ErrInterrupted) || errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return context.Canceled
	}
	if err != nil {
		return err
	}
	return done.(*live).err
}

// keptEvents is how many the view remembers.
const keptEvents = 500

// live is the view's state. Only the program's loop touches it.
type live struct {
	source   Source
	title    string
	interval time.Duration
	style    styles

	width, height int
	last          *trace.Snapshot
	now           *trace.Snapshot // the difference that is shown
	tables        []Table         // of now, with that of the events
	events        []trace.Event
	tab           int
	chosen        map[int]string // the key of the chosen row, by table
	top           map[int]int    // the first row that is shown, by table
	paused        bool
	closed        bool  // the source has ended
	err           error // that ended the view
}

type styles struct{ head, title, tab, chosen, note, dim lipgloss.Style }

func newLive(s Source, title string, interval time.Duration, color bool) *live {
	m := &live{source: s, title: title, interval: interval, chosen: make(map[int]string), top: make(map[int]int), width: 80, height: 24}
	plain := lipgloss.NewStyle()
	m.style = styles{plain.Bold(true), plain.Bold(true), plain.Reverse(true), plain.Reverse(true), plain, plain}
	if color {
		m.style.note = plain.Foreground(lipgloss.Yellow)
		m.style.dim = plain.Faint(true)
		m.style.title = plain.Bold(true).Foreground(lipgloss.Cyan)
	}
	return m
}

// Messages of the view.
type (
	snapshotMsg struct {
		s   *trace.Snapshot
		err error
	}
	eventMsg struct {
		e  trace.Event
		ok bool
	}
	lookMsg struct{}
)

func (m *live) Init() tea.Cmd { return tea.Batch(m.look, m.listen) }

func (m *live) look() tea.Msg {
	s, err := m.source.Snapshot()
	return snapshotMsg{s, err}
}

func (m *live) listen() tea.Msg {
	e, ok := <-m.source.Events()
	return eventMsg{e, ok}
}

func (m *live) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	case lookMsg:
		return m, m.look
	case eventMsg:
		if !msg.ok {
			m.closed = true
			return m, nil
		}
		m.events = append(m.events, msg.e)
		if len(m.events) > keptEvents {
			m.events = m.events[1:]
		}
		if !m.paused {
			m.arrange()
		}
		return m, m.listen
	case snapshotMsg:
		if msg.err != nil {
			m.err = msg.err
			return m, tea.Quit
		}
		m.take(msg.s)
		return m, tea.Tick(m.wait(), func(time.Time) tea.Msg { return lookMsg{} })
	}
	return m, nil
}

// wait is short before the first difference, lest the screen stay empty.
func (m *live) wait() time.Duration {
	if m.now == nil {
		return min(m.interval, 500*time.Millisecond)
	}
	return m.interval
}

func (m *live) take(s *trace.Snapshot) {
	if m.last != nil && !m.paused {
		m.now = s.Since(m.last)
		m.arrange()
	}
	m.last = s
}

// arrange makes the tables anew.
func (m *live) arrange() {
	if m.now == nil {
		return
	}
	events := Table{Name: "events", Title: "What has happened", Head: columns("TIME", "EVENT"), Empty: "Nothing yet: no clock was changed, and nobody new reads one by system calls."}
	for i := len(m.events) - 1; i >= 0; i-- {
		e := m.events[i]
		events.Rows = append(events.Rows, Row{
			Cells:  []string{e.Time.Format("15:04:05.000"), e.String()},
			Detail: []string{e.Time.Format(time.RFC3339Nano), e.String()},
			Key:    e.Time.String() + e.String(),
		})
	}
	m.tables = append(Tables(m.now), events)
}

func (m *live) key(k string) tea.Cmd {
	switch k {
	case "q", "ctrl+c", "esc":
		return tea.Quit
	case "tab", "right", "l":
		m.tab = (m.tab + 1) % tabs
	case "shift+tab", "left", "h":
		m.tab = (m.tab + tabs - 1) % tabs
	case "1", "2", "3", "4", "5", "6":
		m.tab = int(k[0] - '1')
	case "down", "j":
		m.move(1)
	case "up", "k":
		m.move(-1)
	case "pgdown", "space":
		m.move(10)
	case "pgup":
		m.move(-10)
	case "home", "g":
		m.move(-1 << 20)
	case "end", "G":
		m.move(1 << 20)
	case "p":
		m.paused = !m.paused
	}
	return nil
}

const tabs = 6

// table is the one that is shown; nil before the first difference.
func (m *live) table() *Table {
	if m.tab >= len(m.tables) {
		return nil
	}
	return &m.tables[m.tab]
}

// cursor is the index of the chosen row: the first, if that which was chosen is gone.
func (m *live) cursor() int {
	t := m.table()
	for i := range t.Rows {
		if t.Rows[i].Key == m.chosen[m.tab] {
			return i
		}
	}
	return 0
}

func (m *live) move(by int) {
	t := m.table()
	if t == nil || len(t.Rows) == 0 {
		return
	}
	m.chosen[m.tab] = t.Rows[min(max(m.cursor()+by, 0), len(t.Rows)-1)].Key
}

func (m *live) View() tea.View {
	lines := []string{m.style.title.Render(cut("detent trace  "+m.title, m.width))}
	if m.now == nil {
		lines = append(lines, "", "looking ...")
	} else {
		lines = append(lines, m.body()...)
	}
	v := tea.NewView(strings.Join(lines[:min(len(lines), max(m.height, 1))], "\n"))
	v.AltScreen = true
	return v
}

// body lays out all below the title: status, notes, tabs, the table, the detail of
// the chosen row in the lower part, and the keys.
func (m *live) body() []string {
	status := Status(m.now)
	if m.paused {
		status += "  PAUSED"
	}
	if m.closed {
		status += "  ENDED"
	}
	lines := []string{cut(status, m.width)}
	for _, n := range Notes(m.now) {
		if len(lines) > 4 {
			break
		}
		lines = append(lines, m.style.note.Render(cut(n, m.width)))
	}
	var names []string
	for i, t := range m.tables {
		name := fmt.Sprintf(" %d %s ", i+1, t.Name)
		if i == m.tab {
			name = m.style.tab.Render(name)
		}
		names = append(names, name)
	}
	t := m.table()
	lines = append(lines, cut(strings.Join(names, ""), m.width), "", m.style.head.Render(cut(t.Title, m.width)))
	room := m.height - 1 - len(lines) - 1 // the title and the keys
	if len(t.Rows) == 0 {
		lines = append(lines, cut(t.Empty, m.width))
		return m.withKeys(lines)
	}
	cursor := m.cursor()
	detail := t.Rows[cursor].Detail
	below := min(len(detail)+1, max(room/3, room-1-len(t.Rows), 2))
	grid := layout(t.Head, t.Rows, m.width)
	lines = append(lines, m.style.dim.Render(grid[0]))
	rows := max(room-1-below, 1)
	top := m.scroll(cursor, rows, len(t.Rows))
	for i := top; i < min(top+rows, len(t.Rows)); i++ {
		line := grid[i+1]
		if i == cursor {
			line = m.style.chosen.Render(line + strings.Repeat(" ", max(m.width-ansi.StringWidth(line), 0)))
		}
		lines = append(lines, line)
	}
	lines = append(lines, m.style.dim.Render(strings.Repeat("─", m.width)))
	for _, d := range detail[:min(len(detail), below-1)] {
		lines = append(lines, cut(d, m.width))
	}
	return m.withKeys(lines)
}

// scroll keeps the chosen row in sight.
func (m *live) scroll(cursor, rows, all int) int {
	top := m.top[m.tab]
	top = min(top, cursor)
	top = max(top, cursor-rows+1)
	top = max(min(top, all-rows), 0)
	m.top[m.tab] = top
	return top
}

func (m *live) withKeys(lines []string) []string {
	for len(lines) < m.height-2 {
		lines = append(lines, "")
	}
	if len(lines) > m.height-2 {
		lines = lines[:max(m.height-2, 0)]
	}
	return append(lines, m.style.dim.Render(cut("1-6 tab  ↑↓ choose  p pause  q quit", m.width)))
}

func cut(s string, width int) string { return ansi.Truncate(s, max(width, 1), "…") }

// layout aligns the cells; the first line is the head. Where a line is too wide it
// is cut at the right.
func layout(head []Column, rows []Row, width int) []string {
	widths := make([]int, len(head))
	for i, c := range head {
		widths[i] = ansi.StringWidth(c.Name)
	}
	for _, r := range rows {
		for i, cell := range r.Cells {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	line := func(cells []string) string {
		var b strings.Builder
		for i, cell := range cells {
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", max(widths[i]-ansi.StringWidth(cell), 0))
			if head[i].Number {
				b.WriteString(pad + cell)
			} else {
				b.WriteString(cell + pad)
			}
		}
		return cut(strings.TrimRight(b.String(), " "), width)
	}
	names := make([]string, len(head))
	for i, c := range head {
		names[i] = c.Name
	}
	lines := []string{line(names)}
	for _, r := range rows {
		lines = append(lines, line(r.Cells))
	}
	return lines
}
