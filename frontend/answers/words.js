// Words of the frame in the page's language.
const CHINESE = {
  "Check": "检查",
  "Check (loads Python once, {} MB)": "检查：首次加载 Python（{} MB）",
  "Loading Python …": "正在加载 Python ……",
  "Starting Python …": "正在启动 Python ……",
  "Checking …": "正在检查 ……",
  "Looking for the mistake …": "正在寻找错误 ……",
  "Stop": "停止",
  "Stopped. What you typed is still here.": "已停止。您输入的内容还在。",
  "Start over": "重新开始",
  "Undo": "撤销",
  "Your answer to {}": "您对 {} 的解答",
  "✓ Right:": "✓ 正确：",
  "✗ Not yet:": "✗ 还不对：",
  "○ Still empty:": "○ 还是空的：",
  "○ Not in this page:": "○ 此页无法运行：",
  "⚠ Python says:": "⚠ Python 报告：",
  "It printed:": "输出：",
  "Tab indents a line. Shift+Tab, or Escape and then Tab, leaves the field. Ctrl+Enter checks your answer.":
    "Tab 缩进。Shift+Tab 或先按 Escape 再按 Tab 离开。Ctrl+Enter 检查。",
  "Opened as a file, this page cannot check answers. Serve the folder: run `python -m http.server` in it and open http://localhost:8000.":
    "以文件方式打开时，此页无法检查解答。请在该文件夹中运行 `python -m http.server`，然后打开 http://localhost:8000。",
  "{} of {} right, {} tried.": "{}/{} 正确，已尝试 {}。",
  "Right at the first guess: {} of {}.": "一次预测正确：{}/{}。",
  "Next: {}.": "下一题：{}。",
  "All done.": "全部完成。",
  "Your progress stays in this browser.": "您的进度保存在此浏览器中。",
  "This browser forbids storage, so your work here is lost when you close the page. Export it to keep it.": "此浏览器禁止存储：进度只保留到您关闭页面。请导出以保存。",
  "This browser's storage is full, so your work here is lost when you close the page. Export it to keep it.": "此浏览器的存储已满：进度只保留到您关闭页面。请导出以保存。",
  "Export": "导出",
  "Import": "导入",
  "Delete all": "全部删除",
  "Delete all progress and answers in this browser?": "删除此浏览器中的所有进度和解答？",
  "Deleted.": "已删除。",
  "Imported.": "已导入。",
  "That file could not be read: {}.": "无法读取该文件：{}。",
  "Open it on Colab": "在 Colab 中打开",
  "Download the notebook": "下载 notebook",
  "{} of {} exercises right": "{}/{} 道练习正确",
  "Go on where you stopped: {}": "从上次停下的地方继续：{}",
  "Show the answer": "显示答案",
  "I knew it": "我知道",
  "Not yet": "还不会",
  "We ask this question again {}.": "{}再次提问。",
  "We ask this question again in the next lesson, or {}.": "下一课或{}再次提问。",
  "tomorrow": "明天",
  "in {} days": "{} 天后",
  "Questions that come back": "会再来的问题",
  "Question {} of {}": "第 {}/{} 题",
  "Nothing is due. The next question comes {}.": "现在没有到期的问题。下一题：{}。",
  "Export for Anki": "导出到 Anki",
  "Copy page": "复制页面",
  "Copied": "已复制",
  "Tutor's file for your assistant": "供您的 AI 助手使用的辅导文件",
  "From lesson {}": "来自第 {} 课",
};

const chinese = globalThis.document?.documentElement.lang.startsWith("zh") ?? false;

/** A sentence in the page's language; `{}` stands for what follows. */
export function say(english, ...values) {
  let text = chinese ? CHINESE[english] ?? english : english;
  for (const value of values) text = text.replace("{}", () => String(value));
  return text;
}
