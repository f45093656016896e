package hostfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// A LogLine is a line of the kernel's log.
type LogLine struct {
	At    time.Duration // since the machine started; -1 if the line does not say
	Level int           // 0 emergency ... 7 debug; -1 if the line does not say
	Text  string        // without stamps and prefixes
}

// A Log is the kernel's log since the machine started, as far as it is kept.
type Log struct {
	Source string // the file, or what else it was read from
	Lines  []LogLine
	// Whole says that the log begins with the machine's start: nothing that it
	// does not have was ever said.
	Whole bool
}

// logFiles are where system loggers leave a copy of the kernel's log.
var logFiles = []string{"var/log/dmesg", "var/log/kern.log", "var/log/messages", "var/log/syslog"}

// ReadLog reads /dev/kmsg, and if that cannot be read, the copies in /var/log. If
// there is none, the error is that of /dev/kmsg.
func ReadLog(root fs.FS) (*Log, error) {
	text, err := readKmsg(root)
	if err == nil {
		return ParseLog("/dev/kmsg", text), nil
	}
	for _, name := range logFiles {
		text, err := readTail(root, name)
		if err != nil {
			continue
		}
		if log := ParseLog("/"+name, text); len(log.Lines) > 0 {
			return log, nil
		}
	}
	return nil, err
}

// mostLog is what is read of a log at most: the end of it.
const mostLog = 32 << 20

// readTail reads the end of a system logger's file, which may be of any size.
func readTail(root fs.FS, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if s, ok := f.(io.Seeker); ok && info.Size() > mostLog {
		if _, err := s.Seek(-mostLog, io.SeekEnd); err != nil {
			return "", err
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, mostLog))
	return string(b), err
}

// The device blocks at its end. It is taken to be there when nothing came for
// kmsgPause, kmsgTries times in a row: once may mean that this thread lost its CPU
// before it could look.
const (
	kmsgPause = 5 * time.Millisecond
	kmsgTries = 4
)

// readKmsg reads all records that there are: each read gives one.
func readKmsg(root fs.FS) (string, error) {
	const name = "dev/kmsg"
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	device, _ := f.(interface{ SetReadDeadline(time.Time) error })
	if info.Mode().IsRegular() {
		device = nil
	} else if device == nil {
		return "", &fs.PathError{Op: "read", Path: name, Err: errors.ErrUnsupported}
	}
	const record = 8 << 10 // the kernel's CONSOLE_EXT_LOG_MAX
	var text strings.Builder
	buffer := make([]byte, record)
	quiet := 0
	for text.Len() < mostLog {
		if device != nil {
			if err := device.SetReadDeadline(time.Now().Add(kmsgPause)); err != nil {
				return "", err
			}
		}
		n, err := f.Read(buffer)
		text.Write(buffer[:n])
		switch {
		case err == nil:
			quiet = 0
		case errors.Is(err, io.EOF):
			return text.String(), nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			if quiet++; quiet == kmsgTries {
				return text.String(), nil
			}
		case overwritten(err):
			// The record went while we read on: the next read continues behind.
		default:
			return "", err
		}
	}
	return text.String(), nil
}

// ParseLog reads text in the form of /dev/kmsg, of dmesg, of klogctl(2), or of a
// system logger's file, whose lines of other programs and earlier starts it leaves out.
func ParseLog(source, text string) *Log {
	log := &Log{Source: source}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		l, ok := parseLogLine(line)
		if !ok {
			continue
		}
		if l.At <= 0 && starts(l.Text) {
			// arm64 says where it boots in a line before the other.
			if n := len(log.Lines); n != 1 || !starts(log.Lines[0].Text) {
				log.Lines = log.Lines[:0]
			}
			log.Whole = true
		}
		log.Lines = append(log.Lines, l)
	}
	return log
}

// starts reports whether a line is one of the first that a kernel writes.
func starts(text string) bool {
	return strings.HasPrefix(text, "Linux version ") || strings.HasPrefix(text, "Booting Linux on physical CPU ")
}

// parseLogLine returns false for what is no line of the kernel's.
func parseLogLine(line string) (LogLine, bool) {
	l := LogLine{At: -1, Level: -1, Text: line}
	switch {
	case line == "" || line[0] == ' ':
		return l, false // a record's dictionary, in /dev/kmsg
	case line[0] == '<':
		level, rest, ok := strings.Cut(line[1:], ">")
		if n, err := strconv.Atoi(level); ok && err == nil && n >= 0 {
			l.Level, l.Text = n&7, rest
		}
	case line[0] >= '0' && line[0] <= '9':
		if kmsg, ok := parseKmsg(line); ok {
			return kmsg, true
		}
	}
	if l.Text == "" || l.Text[0] != '[' {
		_, rest, ok := strings.Cut(l.Text, " kernel: ")
		if !ok {
			return l, false
		}
		l.Text = rest
	}
	if at, rest, ok := parseStamp(l.Text); ok {
		l.At, l.Text = at, rest
	}
	return l, l.Text != ""
}

// parseKmsg reads "6,339,5140900,-;text": priority, number, microseconds, flags.
func parseKmsg(line string) (LogLine, bool) {
	head, text, ok := strings.Cut(line, ";")
	if !ok || text == "" {
		return LogLine{}, false
	}
	fields := strings.Split(head, ",")
	if len(fields) < 4 {
		return LogLine{}, false
	}
	priority, err1 := strconv.ParseUint(fields[0], 10, 32)
	at, err2 := strconv.ParseInt(fields[2], 10, 64)
	if err1 != nil || err2 != nil || at < 0 || at > int64(1<<62/time.Microsecond) {
		return LogLine{}, false
	}
	const facilities = 3 // bits of the priority below the facility; 0 is the kernel's own
	if priority>>facilities != 0 {
		return LogLine{}, false // what somebody wrote into /dev/kmsg
	}
	return LogLine{At: time.Duration(at) * time.Microsecond, Level: int(priority & 7), Text: text}, true
}

// parseStamp reads "[    5.140900] text".
func parseStamp(text string) (time.Duration, string, bool) {
	if !strings.HasPrefix(text, "[") {
		return 0, "", false
	}
	stamp, rest, ok := strings.Cut(text[1:], "]")
	if !ok {
		return 0, "", false
	}
	seconds, micros, ok := strings.Cut(strings.TrimSpace(stamp), ".")
	s, err1 := strconv.ParseInt(seconds, 10, 64)
	us, err2 := strconv.ParseUint(micros, 10, 32)
	if !ok || err1 != nil || err2 != nil || len(micros) != 6 || s < 0 || s > int64(1<<62/time.Second) {
		return 0, "", false
	}
	return time.Duration(s)*time.Second + time.Duration(us)*time.Microsecond, strings.TrimPrefix(rest, " "), true
}

// String has the form of dmesg.
func (l LogLine) String() string {
	if l.At < 0 {
		return l.Text
	}
	return fmt.Sprintf("[%12.6f] %s", l.At.Seconds(), l.Text)
}
